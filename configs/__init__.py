"""One file per figure of the papers; `models.py`, `data.py` and `sizes.py` are shared."""
