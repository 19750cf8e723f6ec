"""Claims about fine-tuned models, decided by losses by sequence length."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.claims.catalogue import (
    MORE_TUNING,
    TUNED_FAILS,
    TUNED_WORKS,
    YARN_BELOW_PI,
)
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.length_group import Group
from experiments.figures.roles import Roles, Shape, Undecided
from experiments.figures.tuned_curve import TunedCurve

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
    measured = {}
    for c in shown.curves:
        inside = (base.multiples >= 1) & (base.multiples <= c.tuned)
        above = c.group.loss_window - base.loss_window[:, [start]]
        measured[c.name] = _stated(above[:, c.at_tuned]) | {
            'largest_from_L_to_tuned': above[:, inside].mean(axis=0).max()
        }
    limit = TUNED_WORKS.thresholds['nats']
    holds = all(m['largest_from_L_to_tuned'] <= limit for m in measured.values())
    return {'tuned_minus_base_at_L_nats': measured}, holds


def _fails(shown: Tuned) -> Measured:
    measured = {}
    for c in shown.curves:
        twice = c.group.at(2 * c.tuned)
        if twice is not None:
            tail = c.group.loss_tail
            measured[c.name] = _stated(tail[:, twice] - tail[:, c.at_tuned])
    if not measured:
        raise Undecided('no curve was measured at twice its tuned length')
    holds = all(m['mean'] > TUNED_FAILS.thresholds['nats'] for m in measured.values())
    return {'rise_from_tuned_to_twice_nats': measured}, holds


def _yarn_below_pi(shown: Tuned) -> Measured:
    pi, yarn = shown.roles[PI], shown.roles[YARN]
    measured = {}
    for c in shown.curves:
        rival = shown.find(c.panel, pi, c.tuned)
        if c.method == yarn and rival is not None:
            name = f'{c.tuned:g} L ({c.panel})' if c.panel else f'{c.tuned:g} L'
            measured[name] = _stated(c.window_at_tuned - rival.window_at_tuned)
    return _all_below('yarn_minus_pi_nats', measured)


def _more_tuning(shown: Tuned) -> Measured:
    fair, raw = shown.roles[FAIR], shown.roles[RAW]
    measured = {}
    for c in shown.curves:
        rival = shown.find(fair, c.method, c.tuned)
        if c.panel == raw and rival is not None:
            difference = c.window_at_tuned - rival.window_at_tuned
            measured[f'{c.method} at {c.tuned:g} L'] = _stated(difference)
    return _all_below('raw_minus_fair_nats', measured)


def _all_below(name: str, measured: Mapping[str, dict[str, Any]]) -> Measured:
    if not measured:
        raise Undecided('no two curves differ in this alone')
    return {name: measured}, all(m['mean'] < 0 for m in measured.values())


def _stated(difference: np.ndarray) -> dict[str, Any]:
    """[seeds] in nats."""
    return {'mean': float(difference.mean()), 'by_seed': difference.tolist()}


RULES: tuple[Rule[Tuned], ...] = (
    Rule(
        TUNED_WORKS,
        'From L to its tuned length the mean loss over the window is at most '
        f"{TUNED_WORKS.thresholds['nats']} nats above the base model's at L, for every curve "
        '(means over seeds).',
        _works,
    ),
    Rule(
        TUNED_FAILS,
        'The loss of the last L/2 positions at twice the tuned length exceeds that at the tuned '
        f'length by more than {TUNED_FAILS.thresholds["nats"]} nats, for every curve measured '
        'there.',
        _fails,
    ),
    Rule(
        YARN_BELOW_PI,
        'YaRN has the lower mean loss over windows of the tuned length, for every length and '
        'budget (means over seeds).',
        _yarn_below_pi,
    ),
    Rule(
        MORE_TUNING,
        'The larger budget has the lower mean loss over windows of the tuned length, for every '
        'method and length (means over seeds).',
        _more_tuning,
    ),
)
