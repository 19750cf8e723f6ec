"""Sorting: lists of single tokens, or of numbers of several digits."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from nope.data.tasks import answers, numbers, scratchpad, symbols
from nope.data.tasks.base import Bin, Example, SteppedTask, matched, no_source
from nope.data.tasks.numbers import spaced
from nope.data.tasks.scratchpad import SolutionStep

SYMBOLS = 50  # that the paper's code takes
NUMBERS = range(10, 10_000)
_SOURCE = re.compile(r'Sort the following list \[ (.+) \]\. ')
_WORDS = 'Sort the following list [ ]. The sorted list is [ ].'
_COMPUTATION = 'The minimum of the unsorted portion'


@dataclasses.dataclass(frozen=True)
class SortSingle(SteppedTask):
    """Sorting of single tokens, drawn uniformly from `symbols` with replacement. The order of
    `symbols` is the sort order."""

    longest: int = 8
    shortest: int = 2
    symbols: tuple[str, ...] = dataclasses.field(default=symbols.closed(SYMBOLS), repr=False)

    form: ClassVar[answers.Form] = answers.WORDS

    def __post_init__(self) -> None:
        if not self.symbols or len(set(self.symbols)) < len(self.symbols):
            raise ValueError(
                f'{self.name}: symbols has {len(self.symbols)}, {len(set(self.symbols))} of them '
                'different; accepted: at least one, and none twice'
            )
        super().__post_init__()

    @property
    def name(self) -> str:
        return 'sort_single'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (_WORDS, scratchpad.ALPHABET, _COMPUTATION, ' '.join(self.symbols))

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        (length,) = bin
        rows = symbols.ranks(self.symbols, length, rng, count)
        return [_example(row, self.symbols.__getitem__) for row in rows]

    def steps(self, source: str) -> list[SolutionStep]:
        ranks = {name: rank for rank, name in enumerate(self.symbols)}
        names = matched(self.name, _SOURCE, source)[1].split(', ')
        if not ranks.keys() >= set(names):
            raise no_source(self.name, source)
        return _selection([ranks[name] for name in names], self.symbols.__getitem__)


@dataclasses.dataclass(frozen=True)
class SortMulti(SteppedTask):
    """Sorting of numbers, uniform in 10 to 9999, written digit by digit."""

    longest: int = 8
    shortest: int = 2

    form: ClassVar[answers.Form] = answers.NUMBERS

    @property
    def name(self) -> str:
        return 'sort_multi'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (_WORDS, scratchpad.ALPHABET, _COMPUTATION, numbers.DIGITS)

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        (length,) = bin
        rows = rng.integers(NUMBERS.start, NUMBERS.stop, size=(count, length)).tolist()
        return [_example(row, spaced) for row in rows]

    def steps(self, source: str) -> list[SolutionStep]:
        items = matched(self.name, _SOURCE, source)[1].split(', ')
        if not all(re.fullmatch(r'[0-9](?: [0-9])*', item) for item in items):
            raise no_source(self.name, source)
        return _selection([numbers.read(item) for item in items], spaced)


def _example(keys: list[int], written: Callable[[int], str]) -> Example:
    answer = ', '.join(map(written, sorted(keys)))
    return Example(
        f'Sort the following list {_listed(keys, written)}. ',
        f'The sorted list is [ {answer} ].',
        len(keys),
        answer,
    )


def _selection(keys: list[int], written: Callable[[int], str]) -> list[SolutionStep]:
    """Steps of a selection sort that swaps the first of the least to the front."""
    steps = []
    for at, front in enumerate(keys):
        least = min(range(at, len(keys)), key=keys.__getitem__)
        keys[at], keys[least] = keys[least], front
        steps.append(
            SolutionStep(
                input=written(front),
                computation=_COMPUTATION,
                output=written(keys[at]),
                variables=None,
                remaining=_listed(keys[at + 1 :], written),
            )
        )
    return steps


def _listed(keys: Sequence[int], written: Callable[[int], str]) -> str:
    return f'[ {", ".join(map(written, keys))} ]'
