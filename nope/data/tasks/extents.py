"""Extents of a task's training examples in tokens: of prompts, and of all that a model reads."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

from nope.data.tasks.base import TRAIN, Example
from nope.data.tasks.batches import tokenised
from nope.data.tasks.config import TaskData
from nope.data.tasks.dataset import draw, parts


class Extents(NamedTuple):
    """Tokens of the shortest and the longest prompt, and the most that a model reads of an example,
    which is all but its last token."""

    shortest_prompt: int
    longest_prompt: int
    longest: int


@functools.lru_cache(maxsize=64)
def training_extents(data: TaskData) -> Extents:
    """Of training's examples, validation among them. Errors as `nope.data.tasks.draw`."""
    tokenizer = data.load_tokenizer()
    read = [tokenised(data.task, tokenizer, example) for example in _decisive(data)]
    prompts = [len(example.prompt) for example in read]
    return Extents(min(prompts), max(prompts), max(example.length for example in read))


def _decisive(data: TaskData) -> Iterable[Example]:
    """All examples; where a length says how many tokens there are, those of both ends alone."""
    if not data.task.tokens_by_length:
        found = data.dataset()
        return (*found.train, *found.validation)
    drawn = [part for part in parts(data.task) if part[0] == TRAIN]
    return (
        e for part in (drawn[0], drawn[-1]) for e in draw(data.task, part, data.sizes, data.seed)
    )
