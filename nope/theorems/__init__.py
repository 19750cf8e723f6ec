"""Theorems on positions without position encoding, as explicit weights of the decoder."""
