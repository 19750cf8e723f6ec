"""Data set of a task: train, validation and test examples, a function of the seed alone.

Every bin has a random generator of its own (seed, task, split, bin), so its examples are the same
whatever else is drawn, as long as NumPy keeps its streams. Training and
validation are shuffled together and the first `sizes.train` are for training. Repeats are kept:
short parity strings and lists recur massively, so validation has examples of training. Tests have
other lengths, and none.

The paper's split is by rules, not by its files: its seed gives other examples here. Numbers of
examples follow exact arithmetic. In floating point 1.15 * 100,000 lies just below 115,000: a
program that rounds shares down has up to 8 examples fewer of parity, polynomials and LEGO.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from nope.data.tasks.base import SPLITS, TEST, TRAIN, Bin, Example, Sizes, Task

SEED = 9842497  # of the paper's data

# Streams of a task's generators: of its bins, of shuffling, of a test bin's sample.
_BINS, _SHUFFLE, _SAMPLE = range(3)


@dataclasses.dataclass(frozen=True)
class Dataset:
    """The examples of a task, shuffled."""

    train: tuple[Example, ...]
    validation: tuple[Example, ...]
    test: tuple[Example, ...]


def dataset(task: Task, sizes: Sizes | None = None, seed: int = SEED) -> Dataset:
    """The data set of a task. sizes: the paper's unless given.

    An exhaustive task (SCAN, PCFG) has a tenth of its training examples, rounded down, for
    validation; sizes are then the most of each split. ValueError where sizes give a bin no example
    or training fewer than it should have.
    """
    shuffled = []
    for split in SPLITS:
        examples = [e for bin in task.bins(split) for e in draw(task, (split, bin), sizes, seed)]
        order = _generator(task, seed, _SHUFFLE, (split, ())).permutation(len(examples))
        shuffled.append([examples[i] for i in order])
    pool, test = shuffled
    if task.exhaustive:
        tenth = len(pool) // 10
        most = sizes or Sizes(len(pool), len(pool), len(test))
        return Dataset(
            train=tuple(pool[tenth:][: most.train]),
            validation=tuple(pool[:tenth][: most.validation]),
            test=tuple(test[: most.test]),
        )
    sizes = sizes or task.paper_sizes
    if len(pool) < sizes.train:
        raise ValueError(
            f'{task.name}: {len(pool)} examples for train={sizes.train}; bins are rounded '
            'down, so raise validation'
        )
    return Dataset(tuple(pool[: sizes.train]), tuple(pool[sizes.train :]), tuple(test))


def parts(task: Task) -> tuple[tuple[str, Bin], ...]:
    """Parts of a data set, (split, bin), each with its own random generator."""
    return tuple((split, bin) for split in SPLITS for bin in task.bins(split))


def draw(
    task: Task, part: tuple[str, Bin], sizes: Sizes | None = None, seed: int = SEED
) -> list[Example]:
    """The examples of one part, a function of the arguments alone. ValueError where tests would
    have symbols that training has not."""
    split, bin = part
    sizes = sizes or task.paper_sizes
    trained, tested = _per_bin(task, TRAIN, sizes), _per_bin(task, TEST, sizes)
    sampled = split == TEST and task.sampled_test
    if sampled and task.by_symbol and tested > trained:
        raise ValueError(
            f'{task.name}: test={sizes.test} asks for {tested} examples of each length, with '
            f'more symbols than the {trained} of training have; lower it'
        )
    count = trained if split == TRAIN else max(trained, tested) if sampled else tested
    examples = task.examples(bin, _generator(task, seed, _BINS, part), count)
    if sampled:
        picks = _generator(task, seed, _SAMPLE, part).permutation(len(examples))[:tested]
        examples = [examples[i] for i in picks]
    if not examples:
        raise ValueError(f'{task.name}: sizes give no whole example of length {max(bin)}')
    return examples


def _per_bin(task: Task, split: str, sizes: Sizes) -> int:
    count = task.per_bin(split, sizes)
    if not count and not task.exhaustive:
        raise ValueError(
            f'{task.name}: {sizes} gives no {split} example for each of '
            f'{len(task.bins(split))} bins'
        )
    return count


def _generator(task: Task, seed: int, stream: int, part: tuple[str, Bin]) -> np.random.Generator:
    split, bin = part
    return np.random.default_rng((seed, task.stream, stream, SPLITS.index(split), *bin))
