"""What the paper's Table 2 says of fine-tuned models, tested on losses by sequence length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import Claim
from experiments.figures.length_claims import RISE_NATS
from experiments.figures.length_group import Group
from experiments.figures.tuned_curve import TunedCurve

PI, YARN = 'PI', 'YaRN'
FAIR, RAW = 'fair', 'raw'
# The most that a fine-tuned model of Table 2 loses up to its length is 0.25 nats.
WORKS_NATS = 0.3


def from_curves(base: Group, curves: Sequence[TunedCurve]) -> list[Claim]:
    """Every claim that the curves can bear. Methods are told by their names, budgets by the
    words 'fair' and 'raw' in the titles of panels."""
    found = [
        works_up_to_tuned(base, curves),
        fails_past_tuned(curves),
        yarn_below_pi(curves),
        raw_below_fair(curves),
    ]
    return [claim for claim in found if claim is not None]


def works_up_to_tuned(base: Group, curves: Sequence[TunedCurve]) -> Claim | None:
    start = base.at(1)
    if start is None:
        return None
    measured = {}
    for c in curves:
        inside = (base.multiples >= 1) & (base.multiples <= c.tuned)
        above = c.group.window - base.window[:, [start]]
        measured[c.name] = _stated(above[:, c.at_tuned]) | {
            'largest_from_L_to_tuned': above[:, inside].mean(axis=0).max()
        }
    return Claim(
        None,
        'Fine-tuned models work up to their tuned length: PG19 perplexity there (2 L, 4 L, 8 L) '
        'with PI 15.9, 17.1 and 18.2 after 200 steps and 15.0, 15.0 and 14.9 after 1,000, with '
        'YaRN 15.4, 15.5 and 15.5, and 15.0, 14.8 and 14.5; the base model at L 14.5 (Table 2).',
        {'tuned_minus_base_at_L_nats': measured},
        all(m['largest_from_L_to_tuned'] <= WORKS_NATS for m in measured.values()),
        f'From L to its tuned length the mean loss over the window is at most {WORKS_NATS} nats '
        "above the base model's at L, for every curve (means over seeds).",
    )


def fails_past_tuned(curves: Sequence[TunedCurve]) -> Claim | None:
    measured = {}
    for c in curves:
        twice = c.group.at(2 * c.tuned)
        if twice is not None:
            measured[c.name] = _stated(c.group.tail[:, twice] - c.group.tail[:, c.at_tuned])
    if not measured:
        return None
    return Claim(
        None,
        'Fine-tuned models fail past their tuned length: PG19 perplexity at twice the length '
        '545 to 910 for every one of them, 3.5 to 4.1 nats more (Table 2).',
        {'rise_from_tuned_to_twice_nats': measured},
        all(m['mean'] > RISE_NATS for m in measured.values()),
        'The loss of the last L/2 positions at twice the tuned length exceeds that at the tuned '
        f'length by more than {RISE_NATS} nats, for every curve measured there.',
    )


def yarn_below_pi(curves: Sequence[TunedCurve]) -> Claim | None:
    measured = {}
    for c in curves:
        rival = _found(curves, c.panel, PI, c.tuned)
        if _is(c, YARN) and rival is not None:
            name = f'{c.tuned:g} L ({c.panel})' if c.panel else f'{c.tuned:g} L'
            measured[name] = _stated(c.window_at_tuned - rival.window_at_tuned)
    return _all_below(
        'YaRN is below PI at the same length and budget, or level with it: by 0.03, 0.10 and 0.16 '
        'nats at 2 L, 4 L and 8 L after 200 steps, by 0.00, 0.01 and 0.03 after 1,000 (PG19, '
        'Table 2).',
        'yarn_minus_pi_nats',
        measured,
        'YaRN has the lower mean loss over windows of the tuned length, for every length and '
        'budget (means over seeds).',
    )


def raw_below_fair(curves: Sequence[TunedCurve]) -> Claim | None:
    fair = next((c.panel for c in curves if FAIR in c.panel.lower()), None)
    raw = next((c.panel for c in curves if RAW in c.panel.lower()), None)
    if fair is None or raw is None:
        return None
    measured = {}
    for c in curves:
        rival = _found(curves, fair, c.method, c.tuned)
        if c.panel == raw and rival is not None:
            measured[f'{c.method} at {c.tuned:g} L'] = _stated(
                c.window_at_tuned - rival.window_at_tuned
            )
    return _all_below(
        'More fine-tuning helps: after 1,000 steps perplexity at the tuned length is lower than '
        'after 200, by 0.06, 0.13 and 0.20 nats with PI and by 0.03, 0.05 and 0.07 with YaRN '
        '(PG19 at 2 L, 4 L and 8 L, Table 2).',
        'raw_minus_fair_nats',
        measured,
        'The larger budget has the lower mean loss over windows of the tuned length, for every '
        'method and length (means over seeds).',
    )


def _all_below(
    paper: str, name: str, measured: Mapping[str, dict[str, Any]], statement: str
) -> Claim | None:
    if not measured:
        return None
    holds = all(m['mean'] < 0 for m in measured.values())
    return Claim(None, paper, {name: measured}, holds, statement)


def _stated(difference: np.ndarray) -> dict[str, Any]:
    """[seeds] in nats."""
    return {'mean': float(difference.mean()), 'by_seed': difference.tolist()}


def _found(
    curves: Sequence[TunedCurve], panel: str, method: str, tuned: float
) -> TunedCurve | None:
    return next(
        (c for c in curves if c.panel == panel and _is(c, method) and c.tuned == tuned), None
    )


def _is(curve: TunedCurve, method: str) -> bool:
    return curve.method.lower() == method.lower()
