"""Multipliers of the logits that follow the length."""
