"""Reversal of several characters: once (mc), twice (mc2x), then the original (mcrv)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from nope.data.tasks import symbols
from nope.data.tasks.base import NEXT, Bin, Example, Task

VARIANTS = ('mc', 'mc2x', 'mcrv')
SYMBOLS = 100  # that the paper's code takes


@dataclasses.dataclass(frozen=True)
class Reverse(Task):
    """Reversal of symbols drawn uniformly from `symbols`, with replacement."""

    longest: int = 20
    shortest: int = 2
    variant: str = 'mc'
    symbols: tuple[str, ...] = dataclasses.field(default=symbols.closed(SYMBOLS), repr=False)

    separator: ClassVar[str] = '[SEP] '
    sampled_test: ClassVar[bool] = True
    tokens_by_length: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f'reverse: variant {self.variant!r}; accepted: {", ".join(VARIANTS)}')
        if not self.symbols:
            raise ValueError(f'{self.name}: symbols is empty')
        super().__post_init__()

    @property
    def name(self) -> str:
        return self.variant

    @property
    def alphabet(self) -> tuple[str, ...]:
        twice = () if self.variant == 'mc' else (NEXT,)
        return ('Reverse: [SEP]', *twice, ' '.join(self.symbols))

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        (length,) = bin
        drawn = []
        for names in symbols.rows(self.symbols, length, rng, count):
            there, back = ' '.join(names), ' '.join(reversed(names))
            target = {'mc': back, 'mc2x': back + NEXT + back, 'mcrv': back + NEXT + there}[
                self.variant
            ]
            drawn.append(Example(f'Reverse: {there} ', target, length, target))
        return drawn
