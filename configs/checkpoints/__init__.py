"""A checkpoint of the user's: its context extended, its RULER scores."""
