"""Checked values of a config file: type and range are checked when a value is read.

The file is not to be trusted. A read value has the type that was asked for. Anything else is a
ValueError with the file, the key, its value and what is accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from nope.interop.safetensors import shown

# More than any model has, and little enough that a number in a file cannot ask for much memory.
MAX_LAYERS = 10_000
MAX_WIDTH = 1 << 20
MAX_VOCABULARY = 1 << 24
MAX_LENGTH = 1 << 30
MAX_NUMBER = 1e30
MAX_LIST = 1 << 16
MAX_NUMBERS = 1 << 12

WHERE = 'config.json: '  # what errors about keys of the file itself begin with

_REQUIRED: Any = object()


class Fields:
    """Keys of a JSON object. A key that is null is a key that is left out, unless said otherwise.

    where: what errors begin with, the file's name and the path to the object.
    """

    def __init__(self, values: Mapping[str, Any], where: str = WHERE) -> None:
        self.values = values
        self.where = where

    def has(self, key: str) -> bool:
        """True where the key is there and not null."""
        return self.values.get(key) is not None

    def wrong(self, key: str, accepted: str) -> ValueError:
        """The error for a key with the value that it has."""
        if key not in self.values:
            return ValueError(f'{self.where}{key} is missing; accepted: {accepted}')
        return ValueError(f'{self.where}{key} is {shown(self.values[key])}; accepted: {accepted}')

    def integer(self, key: str, most: int, default: int = _REQUIRED, least: int = 1) -> int:
        if not self.has(key) and default is not _REQUIRED:
            return default
        value = self.values.get(key)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(key, f'an integer from {least} to {most}')
        return value

    def optional_length(self, key: str) -> int | None:
        return self.integer(key, MAX_LENGTH) if self.has(key) else None

    def number(
        self,
        key: str,
        default: float = _REQUIRED,
        above: float = 0.0,
        most: float = MAX_NUMBER,
        zero: bool = False,
    ) -> float:
        """zero: whether 0 is accepted too."""
        if not self.has(key) and default is not _REQUIRED:
            return default
        value = self.values.get(key)
        if not _is_number(value, above, most, zero):
            raise self.wrong(key, f'a number above {above:g}{" or 0" * zero}, at most {most:g}')
        return float(value)  # type: ignore[arg-type]

    def optional_number(self, key: str) -> float | None:
        return self.number(key) if self.has(key) else None

    def numbers(self, key: str, zero: bool = False) -> tuple[float, ...]:
        """A list of numbers above 0. zero: whether 0 is accepted too."""
        value = self.values.get(key)
        if not isinstance(value, list) or not 0 < len(value) <= MAX_NUMBERS:
            raise self.wrong(key, f'a list of 1 to {MAX_NUMBERS} numbers')
        if not all(_is_number(item, 0.0, MAX_NUMBER, zero) for item in value):
            accepted = f'a list of numbers above 0{" or 0" * zero}, at most {MAX_NUMBER:g}'
            raise self.wrong(key, accepted)
        return tuple(float(item) for item in value)

    def choices(self, key: str, accepted: Iterable[Any]) -> tuple[Any, ...]:
        """A list of which every item is one of `accepted`, of the same type."""
        value, accepted = self.values.get(key), tuple(accepted)
        if not isinstance(value, list) or len(value) > MAX_LIST:
            raise self.wrong(key, f'a list of at most {MAX_LIST} items')
        if not all(_is_one_of(item, accepted) for item in value):
            raise self.wrong(key, f'a list of {" and ".join(map(json.dumps, accepted))} only')
        return tuple(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.values[key] if self.has(key) else default
        if not isinstance(value, bool):
            raise self.wrong(key, 'true or false')
        return value

    def text(self, key: str, accepted: Iterable[str], default: str) -> str:
        """One of the names in `accepted`."""
        if not self.has(key):
            return default
        value, accepted = self.values.get(key), tuple(accepted)
        if not _is_one_of(value, accepted):
            raise self.wrong(key, ', '.join(accepted))
        return value  # type: ignore[return-value]

    def section(self, key: str) -> Fields:
        """The object under a key; an empty one where it is left out."""
        value = self.values[key] if self.has(key) else {}
        if not isinstance(value, Mapping):
            raise self.wrong(key, 'an object')
        return Fields(value, f'{self.where}{key}.')

    def only(self, key: str, *accepted: Any, why: str) -> None:
        """Raises ValueError unless the key is left out or has one of the values.

        why: what the value of the key is the business of.
        """
        value = self.values.get(key)
        if value is not None and not _is_one_of(value, accepted, strict=False):
            listed = ', '.join(json.dumps(item) for item in (*accepted, None))
            raise self.wrong(key, f'{listed} ({why})')

    def known(self, accepted: Iterable[str], why: str) -> None:
        """Raises ValueError for a key that is none of `accepted` and not null."""
        accepted = sorted(accepted)
        for key, value in self.values.items():
            if value is not None and key not in accepted:
                raise ValueError(
                    f'{self.where}{shown(key)} is {shown(value)}; accepted are the keys '
                    f'{", ".join(accepted)} ({why})'
                )

    def agreed(self, *keys: str) -> str:
        """The present one of several names for one thing; the first if none is.

        ValueError where two of them are there with different values.
        """
        found = [key for key in keys if self.has(key)]
        for key in found[1:]:
            if not _is_one_of(self.values[key], (self.values[found[0]],), strict=False):
                raise self.wrong(key, f'the same as {found[0]}, {shown(self.values[found[0]])}')
        return found[0] if found else keys[0]


def tokens(fields: Fields, key: str, vocabulary: int) -> tuple[int, ...]:
    """Ids of one token or of a list of them, each once; none where the key is left out or null. Of
    a list those behind the first may lie beyond the vocabulary, and are left out: of a vocabulary
    that was trimmed."""
    value = fields.values.get(key)
    if value is None:
        return ()
    ids = value if isinstance(value, list) else [value]
    if not ids or any(type(i) is not int or i < 0 for i in ids) or ids[0] >= vocabulary:
        raise fields.wrong(key, f'a token from 0 to {vocabulary - 1}, or a list of such')
    return tuple(dict.fromkeys(i for i in ids if i < vocabulary))


def optional_token(fields: Fields, key: str, vocabulary: int) -> int | None:
    """A token, or None where the key is left out or holds no token of the vocabulary."""
    value = fields.values.get(key)
    return value if type(value) is int and 0 <= value < vocabulary else None


def check_dtype(fields: Fields) -> None:
    """ValueError for a dtype that no tensors are read in. Which one they have, they say
    themselves: a config may name another, none, or 'auto'."""
    key = fields.agreed('dtype', 'torch_dtype')
    value = fields.values.get(key)
    if isinstance(value, str):
        fields = Fields({key: re.sub(r'^torch\.', '', value)}, fields.where)
    fields.text(key, ('float32', 'bfloat16', 'float16', 'auto'), 'auto')


def _is_number(value: Any, above: float, most: float, zero: bool) -> bool:
    # Compared before it becomes a float: an integer may be too large for one. NaN fails too.
    return type(value) in (int, float) and (above < value <= most or (zero and value == 0))


def _is_one_of(value: Any, accepted: Iterable[Any], strict: bool = True) -> bool:
    """strict: 1, 1.0 and true are different values."""
    return any(value == item and (not strict or type(value) is type(item)) for item in accepted)
