"""Lengths of a task's prompts: what a model reads before it answers, without a label."""

from __future__ import annotations

import functools

import numpy as np

from nope.data.tasks.base import TRAIN, Example
from nope.data.tasks.config import TaskData
from nope.data.tasks.dataset import draw, parts


@functools.lru_cache(maxsize=64)
def longest_prompt(data: TaskData) -> int:
    """Tokens of the longest prompt among training's examples of its greatest length. Draws these
    alone; errors as `nope.data.tasks.draw`."""
    trained = [part for part in parts(data.task) if part[0] == TRAIN]
    longest = max(max(bin) for _, bin in trained)
    drawn = [draw(data.task, part, data.sizes, data.seed) for part in trained if longest in part[1]]
    return max(_lengths(data, [example for part in drawn for example in part]))


def shortest_prompt(data: TaskData) -> int:
    """Tokens of the shortest prompt among all training examples; errors as `TaskData.dataset`."""
    return min(_lengths(data, data.dataset().train))


def _lengths(data: TaskData, examples: list[Example] | tuple[Example, ...]) -> list[int]:
    tokenizer = data.load_tokenizer()
    return [np.size(tokenizer.encode(data.task.prompt(example))) for example in examples]
