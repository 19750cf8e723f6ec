"""Mapping between the tensors of another library's checkpoint and our parameters.

A `Tensor` of a file holds one or more of our `Parameter`s, each for one layer or for the whole
model. A `Layout` takes it apart (import) and puts it together (export); both are views and
copies of numpy arrays, so a round trip is exact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from nope.interop.row_major import copy_into, row_major


@dataclasses.dataclass(frozen=True)
class Layout:
    """split: the tensor's array -> those of its parts, without copies where numpy allows it.
    join: the parts' arrays -> the tensor's."""

    split: Callable[[np.ndarray], tuple[np.ndarray, ...]]
    join: Callable[[Sequence[np.ndarray]], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One of our parameters: its path under 'params', and its layer (None: it has no layers)."""

    path: tuple[str, ...]
    layer: int | None = None


LAM = ('lam',)  # in place of a path under 'params': a layer's row of lambda
LAM_TENSOR = 'self_attn.scale_param'  # of a layer, which stock leaves unread


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a checkpoint file: its name and shape there, and what it holds."""

    name: str
    shape: tuple[int, ...]
    parts: tuple[Parameter, ...]
    layout: Layout


def _whole(to_ours: Callable[[np.ndarray], np.ndarray], back: Callable[[np.ndarray], np.ndarray]):
    return Layout(lambda array: (to_ours(array),), lambda parts: back(parts[0]))


# Vectors and embedding tables are the same on both sides.
SAME = _whole(lambda array: array, lambda part: part)
# A projection there is [out, in], here [in, out].
TRANSPOSED = _whole(lambda array: array.T, lambda part: part.T)


def parts_out(width: int, heads: int, size: int) -> Layout:
    """[heads * size, D] there, [D, heads, size] here."""
    return _whole(
        lambda array: array.T.reshape(width, heads, size),
        lambda part: part.reshape(width, heads * size).T,
    )


def parts_in(width: int, heads: int, size: int) -> Layout:
    """[D, heads * size] there, [heads, size, D] here."""
    return _whole(
        lambda array: array.T.reshape(heads, size, width),
        lambda part: part.reshape(heads * size, width).T,
    )


def part_vectors(heads: int, size: int) -> Layout:
    """[heads * size] there, [heads, size] here."""
    return _whole(lambda array: array.reshape(heads, size), lambda part: part.reshape(-1))


def taps(width: int, heads: int, size: int) -> Layout:
    """[heads * size, 1, W] there, [W, heads, size] here: a convolution of each channel."""
    return _whole(
        lambda array: array[:, 0].T.reshape(width, heads, size),
        lambda part: part.reshape(width, heads * size).T[:, None],
    )


def halves(layout: Layout) -> Layout:
    """`layout` for heads whose RoPE pairs are neighbours there, dimensions 2j and 2j + 1, and j
    and j + H / 2 here. In every product of queries and keys the order is of no account."""

    def order(size: int) -> np.ndarray:
        return np.r_[0:size:2, 1:size:2]

    def split(array: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(piece[..., order(piece.shape[-1])] for piece in layout.split(array))

    def join(parts: Sequence[np.ndarray]) -> np.ndarray:
        return layout.join([part[..., np.argsort(order(part.shape[-1]))] for part in parts])

    return Layout(split, join)


def fused(layouts: Sequence[Layout], rows: Sequence[np.ndarray]) -> Layout:
    """One tensor with the rows of several parts. Its rows[i] (indices) belong to the part of
    layouts[i]."""
    # Rows that follow one another are a slice, without a copy.
    spans = [
        slice(index[0], index[-1] + 1) if np.all(np.diff(index) == 1) else index for index in rows
    ]

    def split(array: np.ndarray) -> tuple[np.ndarray, ...]:
        pairs = zip(layouts, spans, strict=True)
        return tuple(layout.split(array[span])[0] for layout, span in pairs)

    def join(parts: Sequence[np.ndarray]) -> np.ndarray:
        pieces = [layout.join([part]) for layout, part in zip(layouts, parts, strict=True)]
        total = sum(len(index) for index in rows)
        out = np.empty((total, *pieces[0].shape[1:]), pieces[0].dtype)
        for span, piece in zip(spans, pieces, strict=True):
            if isinstance(span, slice):
                copy_into(out[span], piece)
            else:
                out[span] = row_major(piece)
        return out

    return Layout(split, join)


def matrix(name: str, path: tuple[str, ...], layer: int | None, out: int, inputs: int) -> Tensor:
    """A plain projection: [out, in] there."""
    return Tensor(name, (out, inputs), (Parameter(path, layer),), TRANSPOSED)


def vector(name: str, path: tuple[str, ...], layer: int | None, size: int) -> Tensor:
    """A vector, such as a norm's weight."""
    return Tensor(name, (size,), (Parameter(path, layer),), SAME)
