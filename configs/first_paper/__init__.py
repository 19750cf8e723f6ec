"""The first paper (arXiv 2404.12224): its figures and tables."""
