"""Vocabulary of needles: names, numbers and variables, none of which the filler contains."""

from __future__ import annotations

import string
from collections.abc import Callable

import numpy as np

from nope.data.templates import KEYS

NAMES = (
    'amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heron', 'ivory', 'jade',
    'lotus', 'maple', 'north', 'olive', 'pearl', 'quartz', 'raven', 'stone', 'tulip', 'umbra',
    'violet', 'willow',
)  # fmt: skip
VARIABLE_LETTERS = 3


def names(rng: np.random.RandomState, count: int) -> list[str]:
    """`count` different ones of NAMES."""
    return _different(count, lambda: NAMES[rng.randint(len(NAMES))])


def numbers(rng: np.random.RandomState, count: int) -> list[str]:
    """`count` different numbers of five digits, drawn like passkeys."""
    return _different(count, lambda: str(rng.randint(KEYS.start, KEYS.stop)))


def variables(rng: np.random.RandomState, count: int) -> list[str]:
    """`count` different names of three capital letters, none of them VAR."""
    letters = string.ascii_uppercase

    def draw() -> str:
        return ''.join(letters[i] for i in rng.randint(len(letters), size=VARIABLE_LETTERS))

    return _different(count, draw, without='VAR')


def _different(count: int, draw: Callable[[], str], without: str = '') -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        word = draw()
        if word != without:
            found[word] = None
    return list(found)
