"""Entropy of tokens by their frequencies alone."""

from __future__ import annotations

import numpy as np


def entropy(tokens: np.ndarray) -> float:
    """Nats a token, of integers of any shape, one at least: -sum p ln p over their own frequencies.

    No model that knows frequencies alone has a lower loss on these tokens, however it was trained
    (Gibbs). A model whose loss is not below shows no more than frequencies.
    """
    _, counts = np.unique(tokens, return_counts=True)
    p = counts / counts.sum()
    return float(-(p * np.log(p)).sum())
