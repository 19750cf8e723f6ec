"""Row-major copies: the values of numpy's own, whatever the order of the source."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nope.interop.row_major import copied, copy_into, row_major

SHAPES = [(), (3,), (0, 4), (1, 7), (300, 517), (17, 33, 270), (2, 300, 5, 60)]
DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]


def numbered(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Every bit pattern of 16, in turns."""
    bits = np.resize(np.arange(1 << 16, dtype=np.uint16), np.prod(shape, dtype=int) * 4)
    return bits.view(dtype)[: np.prod(shape, dtype=int)].reshape(shape)


@pytest.mark.parametrize('dtype', DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_copies_are_row_major_and_bit_for_bit(shape: tuple[int, ...], dtype: Any) -> None:
    source = numbered(shape, dtype)
    for order in itertools.permutations(range(source.ndim)):
        array = source.transpose(order)
        made = copied(array)
        assert made.flags.c_contiguous and not np.shares_memory(made, source)
        assert made.tobytes() == array.tobytes()


def test_copies_of_parts_of_transposed_arrays() -> None:
    source = numbered((700, 900), np.float32)
    array = source.T[100:800:2, 300:]
    assert copied(array).tobytes() == array.tobytes()
    target = np.zeros((900, 400), np.float32)
    copy_into(target[100:800:2], array)
    assert target[100:800:2].tobytes() == array.tobytes()
    assert not target[101:800:2].any() and not target[:100].any() and not target[800:].any()


def test_what_is_row_major_is_not_copied() -> None:
    source = numbered((30, 50), np.float32)
    assert row_major(source) is source
    assert not np.shares_memory(row_major(source.T), source)
