"""The look of figures: style, axes, labels, words of captions."""
