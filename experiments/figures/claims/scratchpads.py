"""Claims about scratchpads on synthetic tasks, decided by ranks and accuracies over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from experiments.figures.claims import headline
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.intervals import OVER_SEEDS, Interval, every, stated
from experiments.figures.claims.margins import all_above
from experiments.figures.claims.second_paper import (
    PAD_FORMAT_MATTERS,
    PAD_HELPS_ADDITION,
    PADDED_ENCODINGS,
    UNPADDED_BEST,
)
from experiments.figures.read.encoding_tasks.ranks import ALIKE
from experiments.figures.read.scratchpads import formats
from experiments.figures.read.scratchpads.bars import Bars
from experiments.figures.roles import Undecided

ADDITION = 'addition'
LEADING, TRAILING = ('NoPE', 'T5'), ('ALiBi', 'APE', 'Rotary')


@dataclasses.dataclass(frozen=True)
class Shown:
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


def _best(shown: Shown) -> Measured:
    """Verdict on the ranks of no scratchpad, with equal accuracies sharing ranks and with those
    that are alike doing so."""
    (measured, first, numbers), (_, shared, _) = _ranked(shown, 0.0), _ranked(shown, ALIKE)
    return measured, first if first == shared else None, numbers


def _ranked(shown: Shown, alike: float) -> Measured:
    margins = {}
    for task, bars in shown.bars.items():
        none = bars.at(formats.NONE)
        if task == ADDITION or none is None:
            continue
        ranks = bars.reciprocal(alike).mean(axis=1)  # [F, S]
        for f, name in enumerate(bars.formats):
            if f != none:
                margins[f'none - {name} on {task}'] = Interval.over_seeds(ranks[none] - ranks[f])
    if not margins:
        raise Undecided('no task but addition was measured with and without scratchpad')
    return all_above(margins, UNPADDED_BEST.thresholds['rank'], 'mean reciprocal rank', '')


def _helps(shown: Shown) -> Measured:
    bars, (none, full) = shown.addition(formats.NONE, formats.FULL)
    gains = 100 * (bars.beyond[full] - bars.beyond[none])  # [E, S]
    margins = {
        f'full - none with {paper}': Interval.over_seeds(gain)
        for paper, gain in zip(bars.paper, gains, strict=True)
        if paper
    }
    if not margins:
        raise Undecided('no curve is of an encoding of the paper')
    limit = 100 * PAD_HELPS_ADDITION.thresholds['accuracy']
    return all_above(margins, limit, 'accuracy beyond L', 'points')


def _matters(shown: Shown) -> Measured:
    spreads = {}
    for task, bars in shown.bars.items():
        padded = [f for f, name in enumerate(bars.formats) if name != formats.NONE]
        if len(padded) < 2:
            continue
        beyond = 100 * bars.beyond[padded].mean(axis=1)  # [F, S]
        order = np.argsort(beyond.mean(axis=1))
        worst, best = (bars.formats[padded[i]] for i in (order[0], order[-1]))
        spreads[f'{best} - {worst} on {task}'] = Interval.over_seeds(
            beyond[order[-1]] - beyond[order[0]]
        )
    if not spreads:
        raise Undecided('no task was measured with two formats of scratchpad')
    limit = PAD_FORMAT_MATTERS.thresholds['points']
    decided = every(interval.above(limit) for interval in spreads.values())
    what = 'least spread of accuracy beyond L'
    return stated(spreads), decided, headline.decisive(what, spreads, 'points', highest=False)


def _lead(shown: Shown) -> Measured:
    bars, (full,) = shown.addition(formats.FULL)
    margins = {}
    for first in LEADING:
        for other in TRAILING:
            a, b = bars.encoding(first), bars.encoding(other)
            if a is None or b is None:
                raise Undecided(f'no curve is of the encoding {(first if a is None else other)!r}')
            apart = 100 * (bars.beyond[full, a] - bars.beyond[full, b])
            margins[f'{first} - {other}'] = Interval.over_seeds(apart)
    limit = 100 * PADDED_ENCODINGS.thresholds['accuracy']
    return all_above(margins, limit, 'accuracy beyond L', 'points')


_WITHIN = f'a difference of at most {PAD_HELPS_ADDITION.thresholds["accuracy"]} decides nothing'

RULES: tuple[Rule[Shown], ...] = (
    Rule(
        UNPADDED_BEST,
        'On every task of the figure but addition the mean reciprocal rank of no scratchpad among '
        'the formats, by accuracy beyond L with each encoding, equal accuracies sharing ranks, is '
        'above that of each other format; where accuracies that differ by at most '
        f'{ALIKE} share ranks and that says otherwise, nothing is decided. A difference of at most '
        f'{UNPADDED_BEST.thresholds["rank"]} decides nothing, and {OVER_SEEDS}.',
        _best,
    ),
    Rule(
        PAD_HELPS_ADDITION,
        'On addition the accuracy beyond L with a full scratchpad is above that without, with each '
        f'encoding of the paper that the figure has; {_WITHIN}, and {OVER_SEEDS}.',
        _helps,
    ),
    Rule(
        PAD_FORMAT_MATTERS,
        'On every task of the figure the accuracy beyond L, mean over encodings, of the best '
        'format of scratchpad is above that of the worst by more than '
        f'{PAD_FORMAT_MATTERS.thresholds["points"]:g} points; {OVER_SEEDS}.',
        _matters,
    ),
    Rule(
        PADDED_ENCODINGS,
        'On addition with a full scratchpad the accuracy beyond L of NoPE and of T5 is above that '
        f'of ALiBi, APE and Rotary; {_WITHIN}, and {OVER_SEEDS}.',
        _lead,
    ),
)
