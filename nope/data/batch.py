"""Training batch: tokens, targets, loss weights, document segments, positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Batch(NamedTuple):
    """One training batch, all arrays [B, T], or [A, B / A, T] once cut into micro-batches.

    tokens, targets: int32; the model reads token t and predicts target t.
    weights: float32 >= 0 of each target in the loss (0 for padding or a prompt); None for 1.
    segments: int32 document numbers. A token attends to its own segment only; None for one.
    positions: int32, 0-based, for the position encoding; None for 0 to T - 1.

    Plain next-token prediction fills tokens and targets only. Which arrays are None is the same in
    all batches of a run. The arrays are NumPy's on the host and JAX's on devices.
    """

    tokens: Any
    targets: Any
    weights: Any = None
    segments: Any = None
    positions: Any = None

    @classmethod
    def of_blocks(cls, blocks: Any) -> Batch:
        """Next-token prediction in blocks of T + 1 tokens, int32 [..., T + 1]."""
        return cls(tokens=blocks[..., :-1], targets=blocks[..., 1:])

    @classmethod
    def of_documents(cls, blocks: np.ndarray, begins: np.ndarray) -> Batch:
        """Next-token prediction in blocks whose documents do not see each other.

        blocks: int32 [..., T + 1]. begins: bool [..., T + 1], whether a token is the first one of
        its document. Segments number the documents of a block from 0. Positions count from a
        document's first token in the block, which may be any token of the block's first document. A
        document's last token cannot predict the next document's first one: that target has weight
        0, all others 1.
        """
        inner = begins[..., :-1].copy()
        inner[..., 0] = False
        at = np.arange(inner.shape[-1], dtype=np.int32)
        return cls.of_blocks(blocks)._replace(
            weights=(~begins[..., 1:]).astype(np.float32),
            segments=np.cumsum(inner, axis=-1, dtype=np.int32),
            positions=at - np.maximum.accumulate(np.where(inner, at, 0), axis=-1),
        )

    def first(self, length: int) -> Batch:
        """The first `length` positions of every sequence."""
        return Batch(*(None if array is None else array[..., :length] for array in self))
