"""Mutations of sound files, drawn with numpy: of bytes, of JSON values, of lines.

A case is `draw`, a generator of its own; the same case is the same file everywhere.
"""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Draw = np.random.Generator

# What fields of lengths and counts are set to.
EDGES = (0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 64, 10**6, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63)),
    *(0.0, -0.0, 0.5, 1.5, 1e-300, 1e300, -1e300, float('nan'), float('inf'), -float('inf')),
)
TEXTS = ('', ' ', '0', 'x', 'none', 'a\0b', '..', '/', '../x', '\ud800', 'é', '\n', 'x' * 3000)


def choice(draw: Draw, values: Sequence[Any]) -> Any:
    return values[int(draw.integers(len(values)))]


def one_in(draw: Draw, count: int) -> bool:
    return bool(draw.integers(count) == 0)


# Bytes


def mutated(draw: Draw, data: bytes, others: Sequence[bytes] = (b'',), most: int = 3) -> bytes:
    """`data` after one to `most` changes. others: files that pieces may come from."""
    changed = bytearray(data)
    for _ in range(int(draw.integers(1, most + 1))):
        choice(draw, _CHANGES)(draw, changed, choice(draw, others))
    return bytes(changed)


def _place(draw: Draw, data: bytearray) -> int:
    """Half of the time near one of the ends, where headers and footers are."""
    if not data:
        return 0
    near = min(64, len(data))
    kind = draw.integers(4)
    if kind == 0:
        return int(draw.integers(near))
    if kind == 1:
        return len(data) - 1 - int(draw.integers(near))
    return int(draw.integers(len(data)))


def _flip(draw: Draw, data: bytearray, other: bytes) -> None:
    if data:
        data[_place(draw, data)] ^= 1 << int(draw.integers(8))


def _set(draw: Draw, data: bytearray, other: bytes) -> None:
    if data:
        data[_place(draw, data)] = int(choice(draw, (0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x22)))


def _truncate(draw: Draw, data: bytearray, other: bytes) -> None:
    del data[_place(draw, data) :]


def _delete(draw: Draw, data: bytearray, other: bytes) -> None:
    start = _place(draw, data)
    del data[start : start + int(draw.integers(1, 64))]


def _repeat(draw: Draw, data: bytearray, other: bytes) -> None:
    start = _place(draw, data)
    data[start:start] = data[start : start + int(draw.integers(1, 64))]


def _swap(draw: Draw, data: bytearray, other: bytes) -> None:
    size = int(draw.integers(1, 33))
    first, second = sorted((_place(draw, data), _place(draw, data)))
    if first + size <= second and second + size <= len(data):
        data[first : first + size], data[second : second + size] = (
            data[second : second + size],
            data[first : first + size],
        )


def _splice(draw: Draw, data: bytearray, other: bytes) -> None:
    start = int(draw.integers(len(other) + 1))
    place = _place(draw, data)
    data[place : place + int(draw.integers(64))] = other[start : start + int(draw.integers(1, 64))]


def _edge(draw: Draw, data: bytearray, other: bytes) -> None:
    """A number of 4 or 8 bytes, little endian, at a multiple of 4 more often than not."""
    size = int(choice(draw, (4, 8)))
    place = _place(draw, data)
    place -= place % 4 if draw.integers(4) else 0
    number = int(choice(draw, EDGES)) % (1 << 8 * size)
    data[place : place + size] = struct.pack('<Q', number)[:size]


def _trail(draw: Draw, data: bytearray, other: bytes) -> None:
    data += choice(draw, (b'\0', b'x', b'\n', b'\0' * 64, b'trailing bytes', bytes(data[:16])))


_CHANGES: tuple[Callable[[Draw, bytearray, bytes], None], ...] = (
    *(_flip, _flip, _flip, _set, _truncate, _delete, _repeat, _swap, _splice, _edge, _trail),
)


# JSON


def json_value(draw: Draw, depth: int = 2) -> Any:
    """Any value that JSON has, hostile ones more often than not."""
    kind = draw.integers(8 if depth else 6)
    if kind < 3:
        return choice(draw, NUMBERS)
    if kind < 6:
        return choice(draw, (*TEXTS, None, True, False))
    size = int(draw.integers(3))
    if kind == 6:
        return [json_value(draw, depth - 1) for _ in range(size)]
    return {choice(draw, TEXTS): json_value(draw, depth - 1) for _ in range(size)}


def json_mutated(draw: Draw, value: Any, most: int = 2) -> Any:
    """`value` with one to `most` of its parts replaced, removed, renamed, repeated or nested."""
    root = [copy.deepcopy(value)]
    for _ in range(int(draw.integers(1, most + 1))):
        places = list(_places(root))
        # The value itself now and then; else one of its parts.
        holder, key = places[0] if one_in(draw, 20) else choice(draw, places)
        _change(draw, holder, key)
    return root[0]


def _places(holder: Any) -> Any:
    """(holder, key) of every part, from the outside in."""
    items = holder.items() if isinstance(holder, dict) else enumerate(holder)
    for key, part in list(items):
        yield holder, key
        if isinstance(part, dict | list):
            yield from _places(part)


def _change(draw: Draw, holder: Any, key: Any) -> None:
    old, kind = holder[key], draw.integers(8)
    if kind == 0 and not (isinstance(holder, list) and len(holder) == 1):
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[choice(draw, (*TEXTS, f'{key}x', str(key)[:-1]))] = holder.pop(key)
    elif kind == 2:
        holder[key] = choice(draw, ([old], {'a': old}, str(old), [old, old]))
    elif kind == 3 and isinstance(old, int | float) and not isinstance(old, bool):
        holder[key] = choice(draw, (old + 1, old - 1, -old, old * 2, float(old), str(old)))
    elif kind == 4 and isinstance(old, str):
        holder[key] = choice(draw, (old[:-1], old + 'x', old.upper(), old * 2))
    elif kind == 5 and isinstance(holder, list):
        holder.insert(key, old)
    else:
        holder[key] = json_value(draw)


def json_bytes(draw: Draw, value: Any) -> bytes:
    """A file of JSON that began as `value`: its parts changed, or its bytes, or neither of them
    but a key that is there twice or nesting without end."""
    kind = draw.integers(12)
    if kind < 8:
        return _dumped(json_mutated(draw, value))
    whole = _dumped(value)
    if kind < 10:
        return mutated(draw, whole, [whole])
    if kind == 10:
        begin, end = choice(draw, ((b'[', b']'), (b'{"a":', b'}'), (b'[[],', b']')))
        depth = int(choice(draw, (60, 70, 900, 5000, 200_000)))
        return begin * depth + b'1' + end * depth
    odd = (
        b'',
        b' ',
        b'null',
        b'NaN',
        b'{}',
        b'[]',
        b'"x"',
        b'9' * 5000,
        b'\xff',
        b'\xef\xbb\xbf{}',
    )
    return choice(draw, (*odd, whole + whole, whole[:1] + whole[1:-1] + b',' + whole[1:]))


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()
