"""Copies of transposed arrays in row-major order, by tiles that stay in the cache.

A checkpoint has its projections as [out, in], the model here as [in, out]. A copy in the order of
either side touches one cache line for every value of the other, and takes five times as long.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

_TILE = 256  # values along either axis: a tile of both sides fits the second-level cache


def copied(array: np.ndarray) -> np.ndarray:
    """A row-major copy, which shares no memory with `array`; of any shape and dtype."""
    out = np.empty(array.shape, array.dtype)
    copy_into(out, array)
    return out


def row_major(array: np.ndarray) -> np.ndarray:
    """The array itself where it is row-major, else a copy that is."""
    return array if array.flags.c_contiguous else copied(array)


def copy_into(target: np.ndarray, array: np.ndarray) -> None:
    """Writes `array` to the row-major `target`, of the same shape and dtype."""
    size = array.dtype.itemsize
    if size in (2, 4):  # numpy copies bfloat16 value by value
        target, array = target.view(f'u{size}'), array.view(f'u{size}')
    last = array.ndim - 1
    sizes = zip(array.shape, array.strides, strict=True)
    strides = [abs(stride) if n > 1 else np.inf for n, stride in sizes]
    # The axis along which values lie closest together.
    if array.size <= _TILE * _TILE or (nearest := int(np.argmin(strides))) == last:
        target[...] = array
        return
    tiled = nearest, last
    ranges: list[Sequence[slice | int]] = [
        [slice(i, i + _TILE) for i in range(0, n, _TILE)] if axis in tiled else range(n)
        for axis, n in enumerate(array.shape)
    ]
    for index in itertools.product(*ranges):
        target[index] = array[index]
