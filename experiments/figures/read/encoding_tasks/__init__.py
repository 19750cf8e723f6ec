"""Accuracies of encodings on synthetic tasks, their ranks, and those that are released."""
