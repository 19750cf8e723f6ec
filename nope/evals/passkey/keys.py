"""Passkey retrieval protocol: lengths, depths, positions and keys (arXiv 2404.12224).

A prompt hides a five-digit key in filler; the model is to repeat it. Lengths are nominal: they
leave room for the answer and count the tokens of each piece alone, which makes the prompt itself
about 4% shorter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from nope.data.templates import KEYS

LENGTHS = 16
DEPTHS = 10
TESTS = 10


@dataclasses.dataclass(frozen=True)
class DepthCell:
    """Tests of one nominal length, in tokens, and one depth, a share of it (0.0 .. 0.9).

    `positions[i]` is where test i hides `keys[i]`, in tokens from the start of the prompt; the
    filler moves it to an earlier multiple of its own length (`fillers`).
    """

    length: int
    depth: float
    positions: tuple[int, ...]
    keys: tuple[str, ...]


def plan(max_length: int, seed: int = 42) -> tuple[DepthCell, ...]:
    """The 160 cells of 10 tests: 16 lengths down from max_length, each at 10 depths.

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
    return tuple(cell for length in lengths for cell in _cells(length, generator))


def plan_of_lengths(lengths: Sequence[int], seed: int = 42) -> tuple[DepthCell, ...]:
    """The cells of 10 tests at chosen `lengths`, in tokens, longest first, each at 10 depths.

    Every length has a generator of its own, seeded by `seed` and the length: other lengths change
    neither its positions nor its keys. ValueError for a length below 10 (a depth is then less than
    a token).
    """
    for length in lengths:
        if length < DEPTHS:
            raise ValueError(f'a length is {length} tokens; it must be at least {DEPTHS}')
    return tuple(
        cell
        for length in sorted(lengths, reverse=True)
        for cell in _cells(length, np.random.RandomState([seed, length]))
    )


def _cells(length: int, generator: np.random.RandomState) -> Iterator[DepthCell]:
    """Cells of one length, depths from 0.0. Their positions and then keys are drawn in turn."""
    band = length // DEPTHS
    for depth in range(DEPTHS):
        positions = generator.randint(depth * band, (depth + 1) * band, TESTS)
        keys = generator.randint(KEYS.start, KEYS.stop, TESTS)
        yield DepthCell(
            length=length,
            depth=depth / DEPTHS,
            positions=tuple(positions.tolist()),
            keys=tuple(map(str, keys.tolist())),
        )


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
