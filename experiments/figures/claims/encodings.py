"""Claims about encodings on synthetic tasks, decided by ranks and accuracies over seeds."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.verdict import ABOVE, OVER_SEEDS, Bound
from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.encoding_tasks.ranks import ALIKE, Ranks
from experiments.figures.read.encoding_tasks.scores import Score
from experiments.figures.roles import Undecided

NOPE, APE = 'NoPE', 'APE'
ORDER = ('NoPE', 'T5', 'ALiBi', 'RoPE', 'APE')
COPYING = 'rsc'
# Of cmc every encoding has 0.89 to 0.90 inside L (released results).
SOLVED = ('rsc', 'rsc2x', 'rdc', 'cmc2x', 'mc', 'mc2x', 'mcrv')


@dataclasses.dataclass(frozen=True)
class ShownEncodings:
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


def _ranked(claim: str, said: str, pairs: Sequence[tuple[str, str]]) -> Rule[ShownEncodings]:
    """The rule that the first encoding of each pair ranks above the second. It must do so in the
    paper's way, whose numbers are told, and where accuracies that are alike share their ranks."""
    bound = Bound(ABOVE, 0, CLAIMS[claim].thresholds['rank'])

    def decided(shown: ShownEncodings, shared: bool) -> Measured:
        return Every[ShownEncodings](
            lambda shown: {f'{a} - {b}': shown.apart(a, b, shared=shared) for a, b in pairs},
            bound,
            'least lead in mean reciprocal rank',
            '',
            several=True,
        )(shown)

    def measure(shown: ShownEncodings) -> Measured:
        (measured, first, numbers), (_, shared, _) = decided(shown, False), decided(shown, True)
        return measured, first if first == shared else None, numbers

    statement = (
        'Mean reciprocal ranks of the five encodings by accuracy beyond L, over the tasks of the '
        f'figure, equal accuracies in the order {", ".join(released.ENCODINGS)}: {said}. '
        f'Accuracies that differ by at most {ALIKE} may share their ranks; where the two ways '
        f'differ nothing is decided. A difference of at most {bound.margin} decides nothing, and '
        f'{OVER_SEEDS}.'
    )
    return Rule(claim, statement, measure, ORDER, bound)


def _copies(shown: ShownEncodings) -> dict[str, np.ndarray]:
    found = shown.beyond(COPYING)
    missing = [name for name in ORDER if name not in found]
    if missing:
        raise Undecided(f'no curve is of the encoding {missing[0]!r}')
    return {f'{NOPE} - {other}': 100 * (found[NOPE] - found[other]) for other in ORDER[1:]}


def _solve(shown: ShownEncodings) -> dict[str, np.ndarray]:
    return {
        f'{s.label} on {task}': 100 * s.inside
        for task, scores in shown.scores.items()
        if task in SOLVED
        for s in scores
        if s.paper
    }


RULES: tuple[Rule[ShownEncodings], ...] = (
    _ranked(
        'nope_ranks_first', "NoPE's is above each other one", [(NOPE, other) for other in ORDER[1:]]
    ),
    _ranked(
        'encodings_rank_in_order',
        f'each of {", ".join(ORDER)} is above the next one',
        list(itertools.pairwise(ORDER)),
    ),
    _ranked(
        'sinusoidal_ranks_last',
        "APE's is below each other one",
        [(other, APE) for other in ORDER[:-1]],
    ),
    Rule(
        'nope_copies_longest',
        'Accuracy of NoPE on rsc over all examples beyond L less that of each other encoding',
        Every(
            _copies,
            Bound(ABOVE, 0, 'points'),
            'least lead in accuracy beyond L',
            'points',
            several=True,
        ),
        ORDER,
    ),
    Rule(
        'all_solve_inside',
        'Accuracy over all validation examples of every task of copying and reversal but cmc, with '
        'every encoding of the paper',
        Every(_solve, Bound(ABOVE, 'points'), 'lowest accuracy inside L', '%', several=True),
        ORDER,
    ),
)
