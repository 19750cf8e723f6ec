"""One name has several keys; all are asked for (arXiv 2404.06654, multi-value retrieval)."""

from __future__ import annotations

import numpy as np

from nope.evals.needles import words
from nope.evals.needles.haystack import Haystack, Needle
from nope.evals.needles.task import Hidden, Task

VALUES = 4


def hide(depth: float, rng: np.random.RandomState) -> Hidden:
    """The first key lies at `depth`, the others anywhere behind it."""
    (name,), numbers = words.names(rng, 1), words.numbers(rng, VALUES)
    depths = [depth, *np.sort(rng.uniform(depth, 1, VALUES - 1)).tolist()]
    needles = tuple(
        Needle(at, f'\nOne pass key of {name} is {number}.\n')
        for at, number in zip(depths, numbers, strict=True)
    )
    task = 'One name has several pass keys. Memorize all of them.\n'
    return Hidden(Haystack(task, needles, f'\nThe pass keys of {name} are'), tuple(numbers))


MULTI_VALUE = Task('multi_value', new_tokens=48, hide=hide)
