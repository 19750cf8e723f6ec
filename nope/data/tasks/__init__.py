"""Synthetic tasks of length generalization (arXiv 2305.19466): one small file a family.

A new one is a file here with a class derived from `base.Task`, and a line in `TASKS`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from nope.data.tasks.addition import Addition
from nope.data.tasks.base import Example, Sizes, SteppedTask, Task
from nope.data.tasks.batches import (
    Extents,
    Tokenised,
    masked,
    padded,
    tokenised,
    training_batches,
    training_extents,
)
from nope.data.tasks.config import WORDS, TaskData
from nope.data.tasks.copy import Copy
from nope.data.tasks.dataset import SEED, Dataset, dataset
from nope.data.tasks.lego import Lego
from nope.data.tasks.parity import Parity
from nope.data.tasks.pcfg import Pcfg
from nope.data.tasks.polynomial import Polynomial
from nope.data.tasks.reverse import Reverse
from nope.data.tasks.scan import Scan
from nope.data.tasks.sorting import SortMulti, SortSingle
from nope.data.tasks.summation import Summation
from nope.data.tasks.words import WordTokenizer, vocabulary

# The paper's 17 data splits, with the paper's lengths and closed symbols.
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Copy(variant='rsc'),
        Copy(variant='rsc2x'),
        Copy(variant='rdc'),
        Copy(variant='cmc'),
        Copy(variant='cmc2x'),
        Reverse(variant='mc'),
        Reverse(variant='mc2x'),
        Reverse(variant='mcrv'),
        Addition(),
        Polynomial(),
        SortSingle(),
        SortMulti(),
        Summation(),
        Parity(),
        Lego(),
        Scan(),
        Pcfg(),
    )
}

__all__ = [
    'SEED',
    'TASKS',
    'WORDS',
    'Dataset',
    'Example',
    'Extents',
    'Sizes',
    'SteppedTask',
    'Task',
    'TaskData',
    'Tokenised',
    'WordTokenizer',
    'dataset',
    'masked',
    'named',
    'padded',
    'tokenised',
    'training_batches',
    'training_extents',
    'vocabulary',
]


def named(name: str, **changes: Any) -> Task:
    """The task of a name, with fields changed: `named('cmc', longest=10, symbols=closed(50))`.

    ValueError for a name that is not in `TASKS`, and for fields and values that the task has not.
    """
    if name not in TASKS:
        raise ValueError(f'task {name!r}; accepted: {", ".join(TASKS)}')
    task = TASKS[name]
    fields = [field.name for field in dataclasses.fields(task)]
    for change in changes:
        if change not in fields:
            raise ValueError(
                f'task {name!r} has no field {change!r}; accepted: {", ".join(fields)}'
            )
    return dataclasses.replace(task, **changes)
