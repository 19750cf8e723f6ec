"""Divergences between attention patterns (arXiv 2305.19466, section 5.2 and appendix F.7)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL(p || m) / 2 + KL(q || m) / 2 with m = (p + q) / 2, in nats: 0 for equal, at most ln 2.

    p, q: distributions over the last axis, [..., K]; leading axes broadcast. Computed and
    returned in float64, [...]; 0 ln 0 = 0, and NaN stays NaN. That each row sums to 1 is not
    checked: rounded attention weights do not.
    """
    p, q = _pair(p, q)
    twice = p + q  # KL(2p || 2m) = 2 KL(p || m), and the smallest numbers are not halved to 0
    return (_relative_entropy(2 * p, twice) + _relative_entropy(2 * q, twice)) / 4


def swapped_jensen_shannon(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL(m || p) / 2 + KL(m || q) / 2: what the released code of the paper computes, in nats.

    Arguments as in `jensen_shannon`. It has no upper bound, and is infinite where one of p, q
    is 0 and the other is not.
    """
    p, q = _pair(p, q)
    middle = (p + q) / 2
    return (_relative_entropy(middle, p) + _relative_entropy(middle, q)) / 2


def attention_distance(
    P_TT: np.ndarray,
    Q_TT: np.ndarray,
    *,
    divergence: Callable[[np.ndarray, np.ndarray], np.ndarray] = jensen_shannon,
) -> np.ndarray:
    """D_AT(P, Q): the divergence of row t of P from row t of Q, averaged over rows, in nats.

    P_TT, Q_TT: attention weights [..., T queries, T keys]; leading axes broadcast, so that
    P[:, None] and Q[None] compare all pairs of heads. Returns float64 [...].
    """
    return divergence(P_TT, Q_TT).mean(axis=-1)


def _pair(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(p, np.float64), np.asarray(q, np.float64)


def _relative_entropy(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Sum of p ln(p / q) over the last axis; p and q need not sum to 1."""
    with np.errstate(divide='ignore', invalid='ignore'):
        terms = p * (np.log(p) - np.log(q))
    return np.where(p == 0, 0.0, terms).sum(axis=-1)
