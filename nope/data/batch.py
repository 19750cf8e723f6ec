"""The unit that a training step and an evaluation consume."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Batch(NamedTuple):
    """Tokens with the targets they predict, all [B, T].

    tokens, targets: int32. Target t is the token that follows token t.
    weights: float32 weight of each target in the loss; None means 1 everywhere.
    segments: int32 document number; attention stays inside equal numbers. None means one
        segment (the paper packs documents without masking between them).
    positions: int32; None means 0..T-1.

    It is a pytree of its fields (None is an empty subtree), so it crosses `jit` as it is.
    """

    tokens: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None = None
    segments: np.ndarray | None = None
    positions: np.ndarray | None = None


def from_blocks(blocks: np.ndarray) -> Batch:
    """Cuts int32 blocks [B, T+1] into inputs and next-token targets, both [B, T]."""
    return Batch(tokens=blocks[:, :-1], targets=blocks[:, 1:])
