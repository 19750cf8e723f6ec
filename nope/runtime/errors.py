"""Errors of values that a person gave: the field, the value and the accepted values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

# Why a model computes NaN or infinity, for messages.
OVERFLOWS = 'the weights, a multiplier or the dtype of the computation overflows'
_MOST_SHOWN = 8
_LONGEST = 300  # characters of a line
_LEFT_OUT = ' ... '


class FieldError(ValueError):
    """A field of a typed value that does not fit.

    field: its name in the dataclass; 'position.dims' or 'pattern[1].window' for a field of a value
    that it holds. value: as given. rule: what is accepted, as a clause. Whoever
    made the value from something a person typed knows where that stands and says it in place of
    the bare name (`experiments.config.Section`).
    """

    def __init__(self, field: str, value: Any, rule: str) -> None:
        super().__init__(describe(field, value, rule))
        self.field, self.value, self.rule = field, value, rule


@contextlib.contextmanager
def inside(place: str, *outside: str) -> Iterator[None]:
    """Lets errors of a value's fields say which field holds the value: 'dims' of `position` becomes
    'position.dims'. outside: names that are none of its fields, and stay."""
    try:
        yield
    except FieldError as error:
        if error.field in outside:
            raise
        raise FieldError(f'{place}.{error.field}', error.value, error.rule) from error


def describe(where: str, value: Any, rule: str) -> str:
    """'search.steps is 0; it must be at least 1'."""
    shown = repr(value)
    if isinstance(value, list | tuple) and len(value) > _MOST_SHOWN:
        shown = f'{len(value)} values, {value[0]!r} to {value[-1]!r}'
    return f'{where} is {shown}; {rule}'


def one_of(accepted: Any) -> str:
    """The clause for a choice."""
    return f'accepted: {", ".join(map(str, accepted))}'


def brief(error: BaseException) -> str:
    """First line of a library's error; of its first cause, where its own text goes on. A long line
    loses its middle: paths are long, and the system's word is last."""
    whole = str(error).strip()
    root = error
    while (cause := root.__cause__ or root.__context__) is not None:
        root = cause
    line = str(root if '\n' in whole else error).strip().partition('\n')[0]
    if len(line) > _LONGEST:
        half = (_LONGEST - len(_LEFT_OUT)) // 2
        line = f'{line[:half]}{_LEFT_OUT}{line[-half:]}'
    return line or type(error).__name__
