"""Evaluations: each takes a model, or a `Generator` of one, and returns `Records`."""
