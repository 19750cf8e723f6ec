"""Copying: repeated characters (rsc, rsc2x), replaced (rdc), several characters (cmc, cmc2x)."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import ClassVar

import numpy as np

from nope.data.tasks import symbols
from nope.data.tasks.base import NEXT, Bin, Example, Task

# Variant -> symbols that the paper's sizes need or that its code takes.
SYMBOLS = {'rsc': 6052, 'rsc2x': 6052, 'rdc': 78, 'cmc': 100, 'cmc2x': 100}


@dataclasses.dataclass(frozen=True)
class Copy(Task):
    """Copying of `symbols` in one of five variants.

    rsc, rsc2x: one symbol is repeated, as often or twice as often. Each of the first `count`
    symbols has one example. rdc: one symbol is repeated, and to be replaced by another. All ordered
    pairs are taken of the most first symbols with up to `count` pairs. cmc, cmc2x: symbols are
    drawn uniformly from all, with replacement, once or twice. ValueError for fewer symbols.
    """

    longest: int = 20
    shortest: int = 2
    variant: str = 'cmc'
    symbols: tuple[str, ...] = dataclasses.field(default=(), repr=False)

    separator: ClassVar[str] = '[SEP] '
    sampled_test: ClassVar[bool] = True
    tokens_by_length: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.variant not in SYMBOLS:
            raise ValueError(f'copy: variant {self.variant!r}; accepted: {", ".join(SYMBOLS)}')
        if not self.symbols:
            object.__setattr__(self, 'symbols', symbols.closed(SYMBOLS[self.variant]))
        super().__post_init__()

    @property
    def name(self) -> str:
        return self.variant

    @property
    def by_symbol(self) -> bool:
        return self.variant in ('rsc', 'rsc2x', 'rdc')

    @property
    def alphabet(self) -> tuple[str, ...]:
        lead = 'Replace with in [SEP]' if self.variant == 'rdc' else 'Copy: [SEP]'
        twice = (NEXT,) if self.variant == 'cmc2x' else ()
        return (lead, *twice, ' '.join(self.symbols))

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        (length,) = bin
        if self.variant == 'rdc':
            paired = (1 + math.isqrt(1 + 4 * count)) // 2  # symbols: the most with `count` pairs
            return [
                self._example(
                    f'Replace {old} with {new} in', [old] * length, ' '.join([new] * length)
                )
                for old, new in itertools.permutations(self._first(paired, count), 2)
            ]
        if self.variant in ('rsc', 'rsc2x'):
            copies = length if self.variant == 'rsc' else 2 * length
            return [
                self._example('Copy:', [name] * length, ' '.join([name] * copies))
                for name in self._first(count, count)
            ]
        drawn = []
        for names in symbols.rows(self.symbols, length, rng, count):
            once = ' '.join(names)
            target = once + NEXT + once if self.variant == 'cmc2x' else once
            drawn.append(self._example('Copy:', names, target))
        return drawn

    def _first(self, needed: int, count: int) -> tuple[str, ...]:
        if needed > len(self.symbols):
            raise ValueError(
                f'{self.name}: symbols has {len(self.symbols)}, and {count} examples of each '
                f'length need {needed}; give more symbols, or smaller sizes'
            )
        return self.symbols[:needed]

    def _example(self, lead: str, names: list[str], target: str) -> Example:
        return Example(f'{lead} {" ".join(names)} ', target, len(names), target)
