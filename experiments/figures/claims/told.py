"""Claims about encodings without positions against those that are given them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.verdict import ABOVE, Bound
from experiments.figures.read.encoding_tasks.pairs import Pair
from experiments.figures.roles import Undecided

NOPE = 'NoPE'
TOLD = ('RoPE', 'ALiBi', 'T5', 'APE')


def _leads(shown: Sequence[Pair]) -> dict[str, np.ndarray]:
    found = {pair.told_paper: pair for pair in shown if pair.without_paper == NOPE}
    missing = [name for name in TOLD if name not in found]
    if missing:
        raise Undecided(f'NoPE is not compared with the encoding {missing[0]!r}')
    return {f'{NOPE} - {name}': 100 * found[name].leads.mean(axis=0) for name in TOLD}


RULES: tuple[Rule[Sequence[Pair]], ...] = (
    Rule(
        'nope_beats_told',
        'Accuracy of NoPE over all examples beyond L, mean over the tasks of the figure, less that '
        f'of each of {", ".join(TOLD)}',
        Every(
            _leads,
            Bound(ABOVE, 0, 'points'),
            'least lead in accuracy beyond L',
            'points',
            several=True,
        ),
        (NOPE, *TOLD),
    ),
)
