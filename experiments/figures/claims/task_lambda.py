"""Claim about a searched temperature on synthetic tasks, decided over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import Interval, stated
from experiments.figures.claims.verdict import ABOVE, OVER_SEEDS, Bound
from experiments.figures.read.encoding_tasks.scores import Score
from experiments.figures.roles import Undecided

BASE, SEARCHED, OTHER = ROLES = ('base', 'searched', 'other')


@dataclasses.dataclass(frozen=True)
class ShownTemperatures:
    """Content of a figure: scores of every task, the role of each label, and by task the length of
    the longest examples of the searches."""

    scores: Mapping[str, Sequence[Score]]
    roles: Mapping[str, str]
    until: Mapping[str, int]

    def beyond(self, score: Score) -> np.ndarray:
        """[S] accuracies over all examples that are longer than those of the searches."""
        chosen = score.lengths > self.until[score.task]
        weights = score.samples[chosen]
        return score.accuracy[:, chosen] @ weights / weights.sum()

    def labelled(self, role: str) -> list[str]:
        return [label for label, found in self.roles.items() if found == role]

    def mean(self, label: str) -> np.ndarray:
        """[S] mean of `beyond` over the tasks."""
        every = [s for some in self.scores.values() for s in some if s.label == label]
        return np.mean([self.beyond(score) for score in every], axis=0)


LEAST = CLAIMS['temperature_carries_tasks'].thresholds['points']


def _carries(shown: ShownTemperatures) -> Measured:
    bases, searched = shown.labelled(BASE), shown.labelled(SEARCHED)
    if len(bases) != 1 or not searched:
        raise Undecided('there is no searched curve beside one base')
    base = shown.mean(bases[0])
    margins = {
        f'{label} - {bases[0]}': Interval.of(100 * (shown.mean(label) - base), True, label)
        for label in searched
    }
    verdicts = {name: Bound(ABOVE, LEAST).holds(found) for name, found in margins.items()}
    holds = next(found for found in (True, None, False) if found in verdicts.values())
    best = max(
        (name for name, found in verdicts.items() if found is holds),
        key=lambda name: margins[name].mean,
    )
    what = f'greatest gain beyond the search, {best}'
    return stated(margins), holds, (number(what, margins[best], 'points'),)


RULES: tuple[Rule[ShownTemperatures], ...] = (
    Rule(
        'temperature_carries_tasks',
        'Exact match over all examples longer than those of the search, mean over tasks: with one '
        'of the searched temperatures it is above that of the model as trained by more than '
        f'{LEAST:g} points; {OVER_SEEDS}.',
        _carries,
        (BASE, SEARCHED),
    ),
)
