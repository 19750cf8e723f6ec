"""Passkey retrieval protocol: lengths, depths, positions and keys (arXiv 2404.12224).

A prompt hides a five-digit key in filler; the model is to repeat it. Lengths are nominal: they
leave room for the answer and count the tokens of each piece alone, which makes the prompt itself
about 4% shorter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nope.data.templates import KEYS

LENGTHS = 16
DEPTHS = 10
TESTS = 10


@dataclasses.dataclass(frozen=True)
class PasskeyQuestion:
    """One test of one cell.

    length: nominal tokens of prompt and answer. depth: the cell's, 0.0 .. 0.9. position: where
    the key is to lie, in tokens from the start of the prompt; the filler moves it to an earlier
    multiple of its own length (`fillers`). key: five digits.
    """

    length: int
    depth: float
    test: int
    position: int
    key: str

    @property
    def name(self) -> str:
        """Its key in a log: 'length/depth/test'."""
        return f'{self.length}/{self.depth}/{self.test}'

    @property
    def place(self) -> dict[str, Any]:
        """Fields of the question in its row of a log."""
        return {'length': self.length, 'depth': self.depth, 'test': self.test}


def plan(max_length: int, seed: int = 42) -> tuple[PasskeyQuestion, ...]:
    """The 1,600 tests: 16 lengths down from max_length, each at 10 depths, 10 of each cell.

    One stream of numpy's legacy generator serves all cells, longest first and depths from 0.0: the
    positions and then the keys. ValueError unless max_length, in tokens, is a multiple of 16 and at
    least 160. A depth is then a token or more.
    """
    if max_length % LENGTHS or max_length < LENGTHS * DEPTHS:
        raise ValueError(
            f'max_length is {max_length}; it must be a multiple of {LENGTHS}, '
            f'at least {LENGTHS * DEPTHS}'
        )
    generator = np.random.RandomState(seed)
    parts = range(LENGTHS, 0, -1)
    lengths = (part * (max_length // LENGTHS) for part in parts)
    return tuple(question for length in lengths for question in _questions(length, generator))


def plan_of_lengths(lengths: Sequence[int], seed: int = 42) -> tuple[PasskeyQuestion, ...]:
    """The tests at chosen `lengths`, in tokens, longest first, each at 10 depths, 10 of each cell.

    Every length has a generator of its own, seeded by `seed` and the length: other lengths change
    neither its positions nor its keys. ValueError for a length below 10 (a depth is then less than
    a token).
    """
    for length in lengths:
        if length < DEPTHS:
            raise ValueError(f'a length is {length} tokens; it must be at least {DEPTHS}')
    return tuple(
        question
        for length in sorted(lengths, reverse=True)
        for question in _questions(length, np.random.RandomState([seed, length]))
    )


def _questions(length: int, generator: np.random.RandomState) -> Iterator[PasskeyQuestion]:
    """Questions of one length, depths from 0.0. The positions of a depth and then its keys are
    drawn in turn."""
    band = length // DEPTHS
    for depth in range(DEPTHS):
        positions = generator.randint(depth * band, (depth + 1) * band, TESTS)
        keys = generator.randint(KEYS.start, KEYS.stop, TESTS)
        for test, (position, key) in enumerate(zip(positions.tolist(), keys.tolist(), strict=True)):
            yield PasskeyQuestion(length, depth / DEPTHS, test, position, str(key))


@dataclasses.dataclass(frozen=True)
class PieceCounts:
    """Tokens of each piece of a prompt, each at least 1, as one tokenizer counts them.

    The protocol measures pieces alone, `task` and `info` with a BOS, and fits its prompts by
    that (33, 25, 29, 12 and 6 with Llama's tokenizer). Inside a prompt the same pieces take
    fewer tokens (33, 24, 27, 11 and 6).
    """

    task: int
    filler: int
    info: int
    question: int
    answer: int

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise ValueError(f'{field.name} is {value} tokens; it must be at least 1')


def repeats(length: int, counts: PieceCounts) -> int:
    """Number of repeats of the filler in a prompt of nominal `length`, at any depth of the key.

    counts: pieces measured alone. ValueError where the other pieces alone are longer.
    """
    room = length - counts.task - counts.info - counts.question - counts.answer
    if room < 0:
        raise ValueError(
            f'length {length} is shorter than a prompt without filler, {length - room} tokens'
        )
    return room // counts.filler


def fillers(length: int, position: int, counts: PieceCounts) -> tuple[int, int]:
    """Repeats of the filler before and after the key that `position` of a plan asks for.

    length, position: nominal, in tokens; counts: pieces measured alone. The key is never
    placed inside the task, nor where the question would not fit. ValueError as in `repeats`.
    """
    total = repeats(length, counts)
    latest = length - counts.answer - counts.question - counts.info
    before = (min(max(position, counts.task), latest) - counts.task) // counts.filler
    return before, total - before
