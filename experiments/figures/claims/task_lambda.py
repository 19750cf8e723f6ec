"""Claim about a searched temperature on synthetic tasks, decided over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims import headline
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.intervals import OVER_SEEDS, Interval, stated
from experiments.figures.claims.others import TEMPERATURE_CARRIES_TASKS
from experiments.figures.read.encoding_tasks.scores import Score
from experiments.figures.roles import Undecided

BASE, SEARCHED, OTHER = ROLES = ('base', 'searched', 'other')


@dataclasses.dataclass(frozen=True)
class Shown:
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


def _carries(shown: Shown) -> Measured:
    bases, searched = shown.labelled(BASE), shown.labelled(SEARCHED)
    if len(bases) != 1 or not searched:
        raise Undecided('there is no searched curve beside one base')
    base = shown.mean(bases[0])
    margins = {
        f'{label} - {bases[0]}': Interval.over_seeds(100 * (shown.mean(label) - base))
        for label in searched
    }
    limit = TEMPERATURE_CARRIES_TASKS.thresholds['points']
    verdicts = {name: interval.above(limit) for name, interval in margins.items()}
    holds = next(found for found in (True, None, False) if found in verdicts.values())
    deciding = {name: margins[name] for name, found in verdicts.items() if found is holds}
    numbers = headline.decisive('greatest gain beyond the search', deciding, 'points', highest=True)
    return stated(margins), holds, numbers


RULES: tuple[Rule[Shown], ...] = (
    Rule(
        TEMPERATURE_CARRIES_TASKS,
        'Exact match over all examples longer than those of the search, mean over tasks: with one '
        'of the searched temperatures it is above that of the model as trained by more than '
        f'{TEMPERATURE_CARRIES_TASKS.thresholds["points"]:g} points; {OVER_SEEDS}.',
        _carries,
    ),
)
