"""Claims about encodings without positions against those that are given them."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.intervals import OVER_SEEDS, Interval
from experiments.figures.claims.margins import all_above
from experiments.figures.claims.second_paper import NOPE_BEATS_TOLD
from experiments.figures.read.encoding_tasks.pairs import Pair
from experiments.figures.roles import Undecided

NOPE = 'NoPE'
TOLD = ('Rotary', 'ALiBi', 'T5', 'APE')
_MARGIN = NOPE_BEATS_TOLD.thresholds['accuracy']


def _leads(shown: Sequence[Pair]) -> Measured:
    found = {pair.told_paper: pair for pair in shown if pair.without_paper == NOPE}
    missing = [name for name in TOLD if name not in found]
    if missing:
        raise Undecided(f'NoPE is not compared with the encoding {missing[0]!r}')
    margins = {
        f'{NOPE} - {name}': Interval.over_seeds(100 * found[name].leads.mean(axis=0))
        for name in TOLD
    }
    return all_above(margins, 100 * _MARGIN, 'accuracy beyond L', 'points')


RULES: tuple[Rule[Sequence[Pair]], ...] = (
    Rule(
        NOPE_BEATS_TOLD,
        'The accuracy of NoPE over all examples beyond L, averaged over the tasks of the figure, '
        f'is above that of each of {", ".join(TOLD)}; a difference of at most {_MARGIN} decides '
        f'nothing, and {OVER_SEEDS}.',
        _leads,
    ),
)
