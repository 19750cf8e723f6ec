"""Attention of a model that stops: its shape, and how it forms in training."""
