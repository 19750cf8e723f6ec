"""The second paper (arXiv 2305.19466): encodings, scratchpads, patterns, code."""
