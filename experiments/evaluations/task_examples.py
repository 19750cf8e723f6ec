"""Tokenised held-out examples of a synthetic task, by length, and the most tokens they have."""

from __future__ import annotations

import functools
from collections.abc import Container
from typing import NamedTuple

import numpy as np

from nope.data import TaskData
from nope.data.tasks import Tokenised, tokenised
from nope.data.tasks.base import TEST

MOST = 64  # examples that are looked at for the longest


class Longest(NamedTuple):
    """Most tokens that were found of a prompt, and of a prompt with its target but for the last,
    which no model reads."""

    prompt: int
    read: int


def by_length(
    data: TaskData, count: int, splits: Container[str] = ('validation', TEST)
) -> dict[int, list[Tokenised]]:
    """Length -> the first `count` examples of it in these splits, shorter lengths first."""
    tokenizer = data.load_tokenizer()
    found: dict[int, list[Tokenised]] = {}
    for split, example in data.held_out():
        some = found.setdefault(example.length, []) if split in splits else None
        if some is not None and len(some) < count:
            some.append(tokenised(data.task, tokenizer, example))
    return dict(sorted(found.items()))


def read(example: Tokenised) -> np.ndarray:
    """Input tokens of an example: prompt and target, but for the last token."""
    return np.concatenate([example.prompt, example.target[:-1]])


@functools.cache  # hundreds of evaluations are of few tasks
def longest(data: TaskData) -> Longest:
    """The most tokens of some examples of the test's greatest length, without drawing all."""
    task, tokenizer = data.task, data.load_tokenizer()
    there = task.per_bin(TEST, data.sizes or task.paper_sizes)
    rng = np.random.default_rng(data.seed)
    if not there:
        raise ValueError(
            f'task.test: {task.name} has no test example for each of {len(task.bins(TEST))} bins; '
            'raise it'
        )
    some = task.examples(task.bins(TEST)[-1], rng, min(there, MOST))
    if not some:  # as of LEGO, of whose chains each has several
        raise ValueError(
            f'task.test: {there} test examples of each length make no whole group of '
            f'{task.name}; raise it'
        )
    ids = [tokenised(task, tokenizer, example) for example in some]
    return Longest(max(len(x.prompt) for x in ids), max(x.length for x in ids))
