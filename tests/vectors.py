"""Reference numbers that this library did not compute: float64, rounded to ten digits.

RoPE ones are of 64 dimensions, base 10,000 and a training length of 2048 where nothing else is
said.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

VECTORS: dict[str, Any] = json.loads((pathlib.Path(__file__).parent / 'vectors.json').read_text())
RTOL = 1e-6  # of what float32 computes
BASE, DIMS, TRAIN_LENGTH = 10_000.0, 64, 2048


def whole(key: str) -> list[Any]:
    """One case of a parametrized test: all that is under `key`, which is its id."""
    return [pytest.param(VECTORS[key], id=key)]


def entries(key: str, starting_with: str = '') -> list[Any]:
    """Cases (name, value) of a parametrized test: what is under `key`, with ids 'key-name'."""
    return [
        pytest.param(name, value, id=f'{key}-{name}')
        for name, value in VECTORS[key].items()
        if name.startswith(starting_with)
    ]
