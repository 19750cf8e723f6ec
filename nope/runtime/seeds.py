"""Seeds of random keys: whole numbers of 32 bits, each with keys of its own.

A JAX key is made of the lowest 32 bits of its seed, so that a seed above them would silently give
the weights or the samples of another one.
"""

from __future__ import annotations

import numbers
from typing import Any

from nope.runtime.errors import FieldError

RULE = f'accepted: whole numbers from 0 to {2**32 - 1}'


def is_seed(value: Any) -> bool:
    """Whether a value is the seed of a key, and of no other seed's key."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return whole and 0 <= value < 2**32


def check_seed(value: Any, field: str = 'seed') -> None:
    """FieldError for anything but a seed."""
    if not is_seed(value):
        raise FieldError(field, value, RULE)
