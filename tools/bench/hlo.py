"""Communication and arrays of a compiled program, read from its HLO text with loops counted."""

from __future__ import annotations

import collections
import math
import re
from collections.abc import Iterator

COLLECTIVES = (
    *('all-gather', 'all-reduce', 'reduce-scatter', 'all-to-all', 'ragged-all-to-all'),
    *('collective-permute', 'collective-broadcast'),
)
_BITS = {'pred': 8, 's4': 4, 'u4': 4, 'bf16': 16, 'token': 0, 'opaque': 0}

_COMPUTATION = re.compile(r'^(ENTRY )?%?([\w.\-]+) (?:\([^\n]*\) -> [^\n]*)?\{\s*$')
_INSTRUCTION = re.compile(r'^\s+(?:ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$')
_SHAPE = re.compile(r'\b([a-z]\w*)\[([\d,]*)\]')
_CALLED = re.compile(r'(?:calls|to_apply|body|branch_computations)=\{?([%\w.\-, ]+)\}?')
_CONDITION = re.compile(r'condition=%?([\w.\-]+)')
_CONSTANT = re.compile(r'(\d+)\)')
_CHANNEL = re.compile(r'channel_id=(\d+)')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


class CompiledText:
    """A compiled program's text (`compiled.as_text()`), one device's part of it.

    rounds: of a loop that ends when something holds, at most.
    """

    def __init__(self, text: str, rounds: int = 0) -> None:
        self._rounds = rounds
        self._computations: dict[str, list[tuple[str, str, str]]] = {}
        self._entry = ''
        self._with_collectives: dict[str, bool] = {}
        self._read(text)

    def collective_bytes(self) -> dict[str, float]:
        """Bytes that a device gets from others in a run, by kind of collective.

        A TPU's compiler spreads one collective over several fusions, so each channel counts once.
        """
        found: dict[str, tuple[str, float]] = {}
        for times, inside, kind, shape, rest in self._executed():
            name = kind.removesuffix('-start')
            if name not in COLLECTIVES:
                continue
            if name == 'all-reduce' and inside.startswith('all-reduce-scatter'):
                name = 'reduce-scatter of a whole'
            channel = _CHANNEL.search(rest)
            key = channel[1] if channel else f'without channel {len(found)}'
            # An asynchronous start has the operand in its shape as well: the largest part is whole.
            size = max((_bytes(piece) for piece in _SHAPE_TEXT.findall(shape)), default=0.0)
            if name not in ('collective-permute', 'collective-broadcast'):
                # In a ring of n a gather brings (n - 1) / n of its result, a scatter as much of
                # what it reduces, of which its shape is a part, a reduction both.
                parts = _group_size(rest)
                size *= (parts or 1) if name == 'reduce-scatter' else 1
                size *= (parts - 1) / parts if parts else 1.0
                size *= 2 if name == 'all-reduce' else 1
            size *= times
            found[key] = max(found.get(key, (name, 0.0)), (name, size), key=lambda pair: pair[1])
        total: collections.defaultdict[str, float] = collections.defaultdict(float)
        for name, size in found.values():
            total[name.removesuffix(' of a whole')] += size
        return dict(total)

    def largest(self) -> str:
        """The largest array that an instruction makes: 'bf16[8,2048,32000] fusion.12'."""
        made = [
            (_bytes(shape), f'{shape.split("{")[0]} {name}')
            for name, shape in self._shapes.items()
            if not shape.startswith('(')
        ]
        return max(made, default=(0.0, ''))[1]

    def _executed(self) -> Iterator[tuple[float, str, str, str, str]]:
        """(times, computation, kind, shape, rest of the line) of every instruction."""
        waiting = [(self._entry, 1.0)]
        while waiting:
            name, times = waiting.pop()
            for kind, shape, rest in self._computations.get(name, ()):
                yield times, name, kind, shape, rest
                called = _called(rest)
                # How often a loop runs that brings nothing to a device changes nothing here.
                counts = kind == 'while' and any(self._communicates(name) for name in called)
                often = times * (self._trips(rest) if counts else 1)
                waiting += [(name, often) for name in called]

    def _communicates(self, computation: str) -> bool:
        """Whether a collective stands in it, or in what it calls."""
        if computation not in self._with_collectives:
            self._with_collectives[computation] = any(
                kind.removesuffix('-start') in COLLECTIVES
                or any(self._communicates(name) for name in _called(rest))
                for kind, _, rest in self._computations.get(computation, ())
            )
        return self._with_collectives[computation]

    def _trips(self, rest: str) -> int:
        """Rounds of a loop that counts from 0 by 1, as a scan does. The compiler says them, or its
        condition compares with them; ValueError where neither is there."""
        known = _TRIPS.search(rest)
        if known:
            return int(known[1])
        condition = _CONDITION.search(rest)
        made = self._computations.get(condition[1], []) if condition else []
        numbers = [_CONSTANT.match(rest) for kind, _, rest in made if kind == 'constant']
        if len(numbers) != 1 or numbers[0] is None:
            if self._rounds:
                return self._rounds
            raise ValueError(f'how often a loop runs is not known: {rest[:200]}')
        return int(numbers[0][1])

    def _read(self, text: str) -> None:
        here: list[tuple[str, str, str]] = []
        self._shapes: dict[str, str] = {}
        for line in text.splitlines():
            head = _COMPUTATION.match(line)
            if head:
                here = self._computations.setdefault(head[2], [])
                self._entry = head[2] if head[1] else self._entry
                continue
            found = _INSTRUCTION.match(line)
            if found:
                name, shape, kind, rest = found.groups()
                here.append((kind, shape, rest))
                if kind not in ('parameter', 'get-tuple-element'):
                    self._shapes[name] = shape


def _called(rest: str) -> list[str]:
    """Computations that an instruction calls, without a loop's condition."""
    return [
        name.strip().lstrip('%') for names in _CALLED.findall(rest) for name in names.split(',')
    ]


_SHAPE_TEXT = re.compile(r'[a-z]\w*\[[\d,]*\]')


def _group_size(rest: str) -> int:
    """Devices in a group of a collective; 0 where the text does not say."""
    named = re.search(r'replica_groups=mesh\[([^\]]*)\](?:\([^)]*\))? ?\{([^}]*)\}', rest)
    if named:
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", named[1]))
        return math.prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", named[2]))
    iota = re.search(r'replica_groups=\[(\d+),(\d+)\]', rest)
    if iota:
        return int(iota[2])
    listed = re.search(r'replica_groups=\{\{([\d,]*)\}', rest)
    return len(listed[1].split(',')) if listed and listed[1] else 0


def _bytes(shape: str) -> float:
    """Of a shape's text, tuples included: 'f32[2,3]{1,0}', '(s32[], bf16[8])'."""
    total = 0.0
    for dtype, sizes in _SHAPE.findall(shape):
        width = re.search(r'\d+', dtype)
        bits = _BITS.get(dtype, int(width[0]) if width else 0)
        total += math.prod(int(size) for size in sizes.split(',') if size) * bits / 8
    return total
