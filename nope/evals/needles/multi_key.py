"""Several names have a key each; one is asked for (arXiv 2404.06654, multi-key retrieval)."""

from __future__ import annotations

import numpy as np

from nope.evals.needles import words
from nope.evals.needles.haystack import Haystack, Needle
from nope.evals.needles.task import Hidden, Task

KEYS = 4


def hide(depth: float, rng: np.random.RandomState) -> Hidden:
    """The key that is asked for lies at `depth`, the others anywhere."""
    names, numbers = words.names(rng, KEYS), words.numbers(rng, KEYS)
    depths = [depth, *rng.random_sample(KEYS - 1).tolist()]
    needles = tuple(
        Needle(at, f'\nThe pass key of {name} is {number}.\n')
        for at, name, number in zip(depths, names, numbers, strict=True)
    )
    task = 'Every name has a pass key. Memorize the keys.\n'
    return Hidden(Haystack(task, needles, f'\nThe pass key of {names[0]} is'), (numbers[0],))


MULTI_KEY = Task('multi_key', new_tokens=12, hide=hide)
