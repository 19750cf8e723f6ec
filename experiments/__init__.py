"""Entry points: from a config file to runs, records, figures and tables."""
