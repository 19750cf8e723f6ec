"""Claims about fine-tuned models, decided by losses by sequence length."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.lengths import rise
from experiments.figures.claims.verdict import ABOVE, BELOW, Bound
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


def _largest_inside(shown: Tuned) -> dict[str, np.ndarray]:
    """[S] of each curve at the length from L to its own where the mean over seeds is largest."""
    base = shown.base
    start = base.at(1)
    if start is None:
        raise Undecided('windows of L were not measured')
    found = {}
    for c in shown.curves:
        inside = (base.multiples >= 1) & (base.multiples <= c.tuned)
        above = c.group.loss_window - base.loss_window[:, [start]]
        found[c.name] = above[:, int(np.argmax(np.where(inside, above.mean(axis=0), -np.inf)))]
    return found


def _past_tuned(shown: Tuned) -> dict[str, np.ndarray]:
    cases = ((c.name, rise(c.group, c.tuned)) for c in shown.curves)
    return {name: found for name, found in cases if found is not None}


def _yarn_less_pi(shown: Tuned) -> dict[str, np.ndarray]:
    pi, yarn = shown.roles[PI], shown.roles[YARN]
    return {
        f'{c.tuned:g} L ({c.panel})' if c.panel else f'{c.tuned:g} L': c.window_at_tuned
        - other.window_at_tuned
        for c in shown.curves
        if c.method == yarn and (other := shown.find(c.panel, pi, c.tuned))
    }


def _raw_less_fair(shown: Tuned) -> dict[str, np.ndarray]:
    fair, raw = shown.roles[FAIR], shown.roles[RAW]
    return {
        f'{c.method} at {c.tuned:g} L': c.window_at_tuned - other.window_at_tuned
        for c in shown.curves
        if c.panel == raw and (other := shown.find(fair, c.method, c.tuned))
    }


RULES: tuple[Rule[Tuned], ...] = (
    Rule(
        'tuned_works',
        'Largest mean loss over windows from L to the tuned length less that of the base model at '
        'L, for every curve',
        Every(_largest_inside, Bound(BELOW, 'nats'), 'largest tuned - base at L'),
    ),
    Rule(
        'tuned_fails',
        'Loss of the last L/2 positions at twice the tuned length less that at the tuned length, '
        'for every curve measured there',
        Every(_past_tuned, Bound(ABOVE, 'nats'), 'smallest rise to twice the length'),
    ),
    Rule(
        'yarn_below_pi',
        'Mean loss over windows of the tuned length with YaRN less that with PI, for every length '
        'and budget',
        Every(_yarn_less_pi, Bound(BELOW, 'nats'), 'highest YaRN - PI'),
        (PI, YARN),
    ),
    Rule(
        'more_tuning',
        'Mean loss over windows of the tuned length with the larger budget less that with the '
        'smaller one, for every method and length',
        Every(_raw_less_fair, Bound(BELOW, 0, 'nats'), 'highest raw - fair'),
        (FAIR, RAW),
    ),
)
