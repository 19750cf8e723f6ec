"""Chains of assignments; all variables of one value are asked for (arXiv 2404.06654).

RULER's default is one chain, where naming every variable of the text is a right answer. Here a
second chain with another value stands among the first.
"""

from __future__ import annotations

import numpy as np

from nope.evals.needles import words
from nope.evals.needles.haystack import Haystack, Needle
from nope.evals.needles.task import Hidden, Task

CHAINS = 2
VARIABLES = 5  # of a chain: one is given the number, four take it over


def hide(depth: float, rng: np.random.RandomState) -> Hidden:
    """The asked chain begins at `depth`; its links follow in order, anywhere behind. The other
    chain is in order too, anywhere."""
    numbers = words.numbers(rng, CHAINS)
    variables = words.variables(rng, CHAINS * VARIABLES)
    asked, others = variables[:VARIABLES], variables[VARIABLES:]
    behind = np.sort(rng.uniform(depth, 1, VARIABLES - 1)).tolist()
    needles = _chain(numbers[0], asked, [depth, *behind])
    needles += _chain(numbers[1], others, np.sort(rng.random_sample(VARIABLES)).tolist())
    task = 'Variables hold numbers. Memorize which holds which.\n'
    question = f'\nThe variables that hold {numbers[0]} are'
    return Hidden(Haystack(task, needles, question), tuple(asked))


def _chain(number: str, variables: list[str], depths: list[float]) -> tuple[Needle, ...]:
    sources = [number, *(f'VAR {name}' for name in variables)]
    return tuple(
        Needle(depth, f'\nVAR {name} = {source}.\n')
        for depth, name, source in zip(depths, variables, sources[:-1], strict=True)
    )


VARIABLE_TRACKING = Task('variable_tracking', new_tokens=48, hide=hide)
