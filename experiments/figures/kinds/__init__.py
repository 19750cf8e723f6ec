"""Kinds of figures and tables, one file each: options, records, picture, rows, caption, claims."""
