"""Other position encodings and attention weights."""
