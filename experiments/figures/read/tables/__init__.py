"""Rows of tables, and the paper's numbers."""
