"""Sections with their defaults, models, data and other parts of configs."""
