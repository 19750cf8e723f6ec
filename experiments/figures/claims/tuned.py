"""Claims about fine-tuned models, decided by losses by sequence length."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.claims import intervals
from experiments.figures.claims.catalogue import (
    MORE_TUNING,
    TUNED_FAILS,
    TUNED_WORKS,
    YARN_BELOW_PI,
)
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.margins import all_decide, every_above, every_below
from experiments.figures.read.length_group import Group
from experiments.figures.read.tuned_curve import TunedCurve
from experiments.figures.roles import Roles, Shape, Undecided

PI, YARN = 'pi', 'yarn'
FAIR, RAW = 'fair', 'raw'
METHODS: Mapping[str, Shape] = {PI: Shape.ONE, YARN: Shape.ONE}
BUDGETS: Mapping[str, Shape] = {FAIR: Shape.ONE, RAW: Shape.ONE}


@dataclasses.dataclass(frozen=True)
class Tuned:
    """roles: names of methods and titles of panels, which stand for budgets."""

    base: Group
    curves: Sequence[TunedCurve]
    roles: Roles[str]

    def find(self, panel: str, method: str, tuned: float) -> TunedCurve | None:
        found = (c for c in self.curves if (c.panel, c.method, c.tuned) == (panel, method, tuned))
        return next(found, None)


def _works(shown: Tuned) -> Measured:
    base = shown.base
    start = base.at(1)
    if start is None:
        raise Undecided('windows of L were not measured')
    measured: dict[str, dict[str, Any]] = {}
    worst: dict[str, Interval] = {}
    for c in shown.curves:
        inside = (base.multiples >= 1) & (base.multiples <= c.tuned)
        above = c.group.loss_window - base.loss_window[:, [start]]
        largest = int(np.argmax(np.where(inside, above.mean(axis=0), -np.inf)))
        worst[c.name] = Interval.of(above[:, largest])
        measured[c.name] = Interval.of(above[:, c.at_tuned]).stated() | {
            'largest_from_L_to_tuned': worst[c.name].stated()
        }
    limit = TUNED_WORKS.thresholds['nats']
    holds, numbers = all_decide(
        'largest tuned - base at L', worst, 'nats', lambda found: found.below(limit), highest=True
    )
    return {'tuned_minus_base_at_L_nats': measured}, holds, numbers


def _fails(shown: Tuned) -> Measured:
    rises: dict[str, Interval] = {}
    for c in shown.curves:
        twice = c.group.at(2 * c.tuned)
        if twice is not None:
            tail = c.group.loss_tail
            rises[c.name] = Interval.of(tail[:, twice] - tail[:, c.at_tuned])
    if not rises:
        raise Undecided('no curve was measured at twice its tuned length')
    return every_above(
        'rise_from_tuned_to_twice_nats',
        'smallest rise to twice the length',
        rises,
        TUNED_FAILS.thresholds['nats'],
    )


def _yarn_below_pi(shown: Tuned) -> Measured:
    pi, yarn = shown.roles[PI], shown.roles[YARN]
    differences: dict[str, Interval] = {}
    for c in shown.curves:
        rival = shown.find(c.panel, pi, c.tuned)
        if c.method == yarn and rival is not None:
            name = f'{c.tuned:g} L ({c.panel})' if c.panel else f'{c.tuned:g} L'
            differences[name] = Interval.of(c.window_at_tuned - rival.window_at_tuned)
    level = YARN_BELOW_PI.thresholds['nats']
    return _all_below('yarn_minus_pi_nats', 'highest YaRN - PI', differences, level, 0)


def _more_tuning(shown: Tuned) -> Measured:
    fair, raw = shown.roles[FAIR], shown.roles[RAW]
    differences: dict[str, Interval] = {}
    for c in shown.curves:
        rival = shown.find(fair, c.method, c.tuned)
        if c.panel == raw and rival is not None:
            difference = Interval.of(c.window_at_tuned - rival.window_at_tuned)
            differences[f'{c.method} at {c.tuned:g} L'] = difference
    margin = MORE_TUNING.thresholds['nats']
    return _all_below('raw_minus_fair_nats', 'highest raw - fair', differences, 0, margin)


def _all_below(
    name: str, words: str, differences: Mapping[str, Interval], limit: float, margin: float
) -> Measured:
    if not differences:
        raise Undecided('no two curves differ in this alone')
    return every_below(name, words, differences, limit, margin)


RULES: tuple[Rule[Tuned], ...] = (
    Rule(
        TUNED_WORKS,
        'From L to its tuned length the mean loss over the window is less than '
        f"{TUNED_WORKS.thresholds['nats']} nats above the base model's at L, for every curve; "
        f'{intervals.RULE}.',
        _works,
    ),
    Rule(
        TUNED_FAILS,
        'The loss of the last L/2 positions at twice the tuned length exceeds that at the tuned '
        f'length by more than {TUNED_FAILS.thresholds["nats"]} nats, for every curve measured '
        f'there; {intervals.RULE}.',
        _fails,
    ),
    Rule(
        YARN_BELOW_PI,
        'The mean loss over windows of the tuned length with YaRN is below that with PI, or less '
        f'than {YARN_BELOW_PI.thresholds["nats"]} nats above it, for every length and budget; '
        f'{intervals.RULE}.',
        _yarn_below_pi,
    ),
    Rule(
        MORE_TUNING,
        'The larger budget has the lower mean loss over windows of the tuned length, for every '
        f'method and length; a difference of at most {MORE_TUNING.thresholds["nats"]} nats decides '
        f'nothing, and {intervals.RULE}.',
        _more_tuning,
    ),
)
