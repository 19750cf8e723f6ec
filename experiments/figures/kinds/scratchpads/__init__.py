"""Scratchpads on synthetic tasks: accuracies and ranks of formats, and those released."""
