"""Heads or layers of two kinds: local, and without position."""
