"""Accuracies by format of scratchpad."""
