"""Claims about encodings on synthetic tasks, decided by ranks and accuracies over seeds."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.intervals import OVER_SEEDS, Interval, stated
from experiments.figures.claims.margins import all_above, all_decide
from experiments.figures.claims.second_paper import (
    ALL_SOLVE_INSIDE,
    FULL_ORDER,
    NOPE_COPIES,
    NOPE_FIRST,
    RANK_MARGIN,
    SINUSOIDAL_LAST,
)
from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.encoding_tasks.ranks import ALIKE, Ranks
from experiments.figures.read.encoding_tasks.scores import Score
from experiments.figures.roles import Undecided

NOPE, APE = 'NoPE', 'APE'
ORDER = ('NoPE', 'T5', 'ALiBi', 'Rotary', 'APE')
COPYING = 'rsc'
# Of cmc every encoding has 0.89 to 0.90 inside L (released results).
SOLVED = ('rsc', 'rsc2x', 'rdc', 'cmc2x', 'mc', 'mc2x', 'mcrv')


@dataclasses.dataclass(frozen=True)
class Shown:
    """Content of a figure: scores of every task, and reciprocal ranks of the paper's encodings."""

    scores: Mapping[str, Sequence[Score]]
    ranks: Ranks

    def apart(self, first: str, second: str, *, shared: bool) -> np.ndarray:
        """[S] differences of two mean reciprocal ranks. shared: whether accuracies that are alike
        share their ranks. Undecided where the figure has no such encoding."""
        ranks = (self.ranks.shared if shared else self.ranks.first).mean(axis=1)
        indices = [self.ranks.at(paper) for paper in (first, second)]
        for paper, index in zip((first, second), indices, strict=True):
            if index is None:
                raise Undecided(f'no curve is of the encoding {paper!r}')
        return ranks[:, indices[0]] - ranks[:, indices[1]]

    def beyond(self, task: str) -> dict[str, np.ndarray]:
        """Encoding of the paper -> [S] accuracies beyond L."""
        if task not in self.scores:
            raise Undecided(f'the task {task!r} was not measured')
        return {s.paper: s.beyond for s in self.scores[task] if s.paper}


def _leads(shown: Shown) -> Measured:
    return _ranked(shown, [(NOPE, other) for other in ORDER[1:]])


def _in_order(shown: Shown) -> Measured:
    return _ranked(shown, list(itertools.pairwise(ORDER)))


def _trails(shown: Shown) -> Measured:
    return _ranked(shown, [(other, APE) for other in ORDER[:-1]])


def _ranked(shown: Shown, pairs: Sequence[tuple[str, str]]) -> Measured:
    """Whether the first encoding of each pair ranks above the second, in the paper's way and where
    accuracies that are alike share their ranks; the numbers are those of the paper's way."""

    def decided(shared: bool) -> Measured:
        margins = {
            f'{a} - {b}': Interval.over_seeds(shown.apart(a, b, shared=shared)) for a, b in pairs
        }
        return all_above(margins, RANK_MARGIN['rank'], 'mean reciprocal rank', '')

    (measured, first, numbers), (_, shared, _) = decided(False), decided(True)
    return measured, first if first == shared else None, numbers


def _copies(shown: Shown) -> Measured:
    found = shown.beyond(COPYING)
    missing = [name for name in ORDER if name not in found]
    if missing:
        raise Undecided(f'no curve is of the encoding {missing[0]!r}')
    margins = {
        f'{NOPE} - {other}': Interval.over_seeds(100 * (found[NOPE] - found[other]))
        for other in ORDER[1:]
    }
    limit = 100 * NOPE_COPIES.thresholds['accuracy']
    return all_above(margins, limit, 'accuracy beyond L', 'points')


def _solve(shown: Shown) -> Measured:
    found = {
        f'{s.label} on {task}': Interval.over_seeds(100 * s.inside)
        for task, scores in shown.scores.items()
        if task in SOLVED
        for s in scores
        if s.paper
    }
    if not found:
        raise Undecided('no task of copying or reversal was measured with an encoding of the paper')
    limit = 100 * ALL_SOLVE_INSIDE.thresholds['accuracy']
    decided, numbers = all_decide(
        'lowest accuracy inside L',
        found,
        '%',
        lambda interval: interval.above(limit),
        highest=False,
    )
    return stated(found), decided, numbers


_RANKS = (
    'Mean reciprocal ranks of the five encodings by accuracy beyond L, over the tasks of the '
    f'figure, equal accuracies in the order {", ".join(released.ENCODINGS)}: '
)
_LIMIT = (
    f'; where accuracies that differ by at most {ALIKE} share their ranks and that says otherwise, '
    'nothing is decided, since ranks of seeds are often the same by a hair. A '
    f'difference of at most {RANK_MARGIN["rank"]} decides nothing, and {OVER_SEEDS}.'
)

RULES: tuple[Rule[Shown], ...] = (
    Rule(NOPE_FIRST, f"{_RANKS}NoPE's is above each other one{_LIMIT}", _leads),
    Rule(
        FULL_ORDER, f'{_RANKS}each of {", ".join(ORDER)} is above the next one{_LIMIT}', _in_order
    ),
    Rule(SINUSOIDAL_LAST, f"{_RANKS}APE's is below each other one{_LIMIT}", _trails),
    Rule(
        NOPE_COPIES,
        'The accuracy of NoPE on rsc over all examples beyond L is above that of each other '
        f'encoding; a difference of at most {NOPE_COPIES.thresholds["accuracy"]} decides nothing, '
        f'and {OVER_SEEDS}.',
        _copies,
    ),
    Rule(
        ALL_SOLVE_INSIDE,
        'The accuracy over all validation examples of every task of copying and reversal but cmc '
        f'is above {ALL_SOLVE_INSIDE.thresholds["accuracy"]} with every encoding of the paper; '
        f'{OVER_SEEDS}.',
        _solve,
    ),
)
