"""Training: the pure step, the loop around it, its optimizer, state, guards and reports."""
