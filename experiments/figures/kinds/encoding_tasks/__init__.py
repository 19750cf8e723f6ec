"""Position encodings on synthetic tasks: accuracies by length, ranks, and those released."""
