"""Claims about scratchpads on synthetic tasks, decided by ranks and accuracies over seeds."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.verdict import ABOVE, OVER_SEEDS, Bound
from experiments.figures.read.encoding_tasks.ranks import ALIKE
from experiments.figures.read.scratchpads import formats
from experiments.figures.read.scratchpads.bars import Bars
from experiments.figures.roles import Undecided

ADDITION = 'addition'
LEADING, TRAILING = ('NoPE', 'T5'), ('ALiBi', 'APE', 'RoPE')


@dataclasses.dataclass(frozen=True)
class ShownFormats:
    """Bars of scratchpad formats that a figure shows, by task."""

    bars: Mapping[str, Bars]

    def addition(self, *wanted: str) -> tuple[Bars, list[int]]:
        """Bars of addition and the indices of the formats wanted. Undecided without one."""
        if ADDITION not in self.bars:
            raise Undecided(f'the task {ADDITION!r} was not measured')
        bars = self.bars[ADDITION]
        missing = [name for name in wanted if name not in bars.formats]
        if missing:
            raise Undecided(f'{ADDITION} was not measured with the format {missing[0]!r}')
        return bars, [bars.formats.index(name) for name in wanted]


RANK = CLAIMS['unpadded_best'].thresholds['rank']


def _best(shown: ShownFormats) -> Measured:
    """Verdict on the ranks of no scratchpad, with equal accuracies sharing ranks and with those
    that are alike doing so."""

    def ranked(alike: float) -> Measured:
        margins = {}
        for task, bars in shown.bars.items():
            none = bars.at(formats.NONE)
            if task == ADDITION or none is None:
                continue
            ranks = bars.reciprocal(alike).mean(axis=1)  # [F, S]
            for f, name in enumerate(bars.formats):
                if f != none:
                    margins[f'none - {name} on {task}'] = ranks[none] - ranks[f]
        if not margins:
            raise Undecided('no task but addition was measured with and without scratchpad')
        what, bound = 'least lead in mean reciprocal rank', Bound(ABOVE, 0, RANK)
        return Every[ShownFormats](lambda _: margins, bound, what, '', several=True)(shown)

    (measured, first, numbers), (_, shared, _) = ranked(0.0), ranked(ALIKE)
    return measured, first if first == shared else None, numbers


def _helps(shown: ShownFormats) -> dict[str, np.ndarray]:
    bars, (none, full) = shown.addition(formats.NONE, formats.FULL)
    gains = 100 * (bars.beyond[full] - bars.beyond[none])  # [E, S]
    named = zip(bars.paper, gains, strict=True)
    return {f'full - none with {paper}': gain for paper, gain in named if paper}


def _matters(shown: ShownFormats) -> dict[str, np.ndarray]:
    """The best format less the worst one, by means over seeds."""
    spreads = {}
    for task, bars in shown.bars.items():
        padded = [f for f, name in enumerate(bars.formats) if name != formats.NONE]
        if len(padded) < 2:
            continue
        beyond = 100 * bars.beyond[padded].mean(axis=1)  # [F, S]
        order = np.argsort(beyond.mean(axis=1))
        worst, best = (bars.formats[padded[i]] for i in (order[0], order[-1]))
        spreads[f'{best} - {worst} on {task}'] = beyond[order[-1]] - beyond[order[0]]
    return spreads


def _lead(shown: ShownFormats) -> dict[str, np.ndarray]:
    bars, (full,) = shown.addition(formats.FULL)
    margins = {}
    for first, other in itertools.product(LEADING, TRAILING):
        a, b = bars.encoding(first), bars.encoding(other)
        if a is None or b is None:
            raise Undecided(f'no curve is of the encoding {(first if a is None else other)!r}')
        margins[f'{first} - {other}'] = 100 * (bars.beyond[full, a] - bars.beyond[full, b])
    return margins


def _beyond(
    find: Callable[[ShownFormats], dict[str, np.ndarray]], bound: Bound, what: str = 'least lead in'
) -> Every[ShownFormats]:
    return Every(find, bound, f'{what} accuracy beyond L', 'points', several=True)


RULES: tuple[Rule[ShownFormats], ...] = (
    Rule(
        'unpadded_best',
        'On every task of the figure but addition the mean reciprocal rank of no scratchpad among '
        'the formats, by accuracy beyond L with each encoding, is above that of each other format. '
        f'Equal accuracies share ranks; where those that differ by at most {ALIKE} do so and that '
        'says otherwise, nothing is decided. A difference of at most '
        f'{RANK} decides nothing, and {OVER_SEEDS}.',
        _best,
    ),
    Rule(
        'pad_helps_addition',
        'Accuracy beyond L on addition with a full scratchpad less that without, with each '
        'encoding of the paper that the figure has',
        _beyond(_helps, Bound(ABOVE, 0, 'points')),
    ),
    Rule(
        'pad_format_matters',
        'Accuracy beyond L, mean over encodings, of the best format of scratchpad less that of the '
        'worst, on every task of the figure',
        _beyond(_matters, Bound(ABOVE, 'points'), 'least spread of'),
    ),
    Rule(
        'padded_encodings',
        'Accuracy beyond L on addition with a full scratchpad, of NoPE and of T5 less that of '
        'ALiBi, APE and RoPE',
        _beyond(_lead, Bound(ABOVE, 0, 'points')),
    ),
)
