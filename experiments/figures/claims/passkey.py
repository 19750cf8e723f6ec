"""Claims about passkey retrieval by length and depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims.catalogue import PARTS_MATTER, PASSKEY_INSIDE, PASSKEY_REACH
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import apart, decisive, number
from experiments.figures.passkey_panel import PasskeyPanel
from experiments.figures.roles import Roles, Shape, Undecided

FULL, NO_BOUND, NO_INIT, NOPE = 'full', 'no_bound', 'no_init', 'nope'
ABLATED: Mapping[str, Shape] = {FULL: Shape.ONE, NO_BOUND: Shape.ONE, NO_INIT: Shape.ONE}
# nope: models without position encoding, ablations aside.
ROLES: Mapping[str, Shape] = {**ABLATED, NOPE: Shape.SEVERAL}

WITHOUT: Mapping[str, str] = {NO_BOUND: 'without bound', NO_INIT: 'without initialisation'}

Panels = Roles[PasskeyPanel]


def _parts_matter(roles: Panels) -> Measured:
    """Of the full method and one ablation or both."""
    panels = {FULL: roles[FULL]} | {r: p for r in (NO_BOUND, NO_INIT) if (p := roles.get(r))}
    means = {role: p.inside_mean for role, p in panels.items() if p.inside_mean is not None}
    if FULL not in means or len(means) < 2:
        raise Undecided(
            f'{FULL!r} and one of {NO_BOUND!r} and {NO_INIT!r} need prompts inside the window, '
            f'there are of {list(means)}'
        )
    drops = {role: means[FULL] - mean for role, mean in means.items() if role != FULL}
    inside = {
        role: _inside(panels[role]) | {'paper': PARTS_MATTER.numbers[role] / 100} for role in means
    }
    measured = {'inside_window': inside, 'full_minus_other': drops}
    limit = PARTS_MATTER.thresholds['points'] / 100
    shares = {role: np.array(found['by_seed']) for role, found in inside.items()}
    numbers = [
        number(f'full - {WITHOUT[role]}', 100 * apart(shares[FULL], shares[role]), 'points')
        for role in drops
    ]
    return measured, all(drop > limit for drop in drops.values()), tuple(numbers)


def _reach(roles: Panels) -> Measured:
    least, windows = PASSKEY_REACH.thresholds['accuracy'], PASSKEY_REACH.thresholds['windows']
    chosen = roles.several(NOPE)
    # The statement can be decided where prompts went that far, or where the panel fell short.
    decided = [
        p for p in chosen if p.lengths[-1] >= windows * p.context or p.reach(least) < p.lengths[-1]
    ]
    measured = {
        p.label: {
            'reach_over_window': p.reach(least) / p.context,
            'by_seed': [reach / p.context for reach in p.reach_by_seed(least)],
            'measured_up_to': int(p.lengths[-1]) / p.context,
        }
        for p in chosen
    }
    reaches = {p.label: p.reach(least) / p.context for p in chosen}
    numbers = decisive('shortest reach', reaches, 'windows', highest=False)
    if not decided:
        return measured, None, numbers
    return measured, all(p.reach(least) >= windows * p.context for p in decided), numbers


def _mean_inside(roles: Panels) -> Measured:
    panels = [p for p in roles.players.values() if p.inside_mean is not None]
    if not panels:
        raise Undecided('no panel has prompts inside its window')
    measured = {p.label: _inside(p) | _paper(p) for p in panels}
    away = {
        p.label: abs(100 * p.inside_mean - p.paper)
        for p in panels
        if p.inside_mean is not None and p.paper is not None
    }
    if not away:
        inside = {p.label: 100 * p.inside_by_seed for p in panels if p.inside_by_seed is not None}
        return measured, None, decisive('lowest mean inside', inside, '%', highest=False)
    numbers = decisive("furthest from the paper's mean", away, 'points', highest=True)
    return measured, max(away.values()) <= PASSKEY_INSIDE.thresholds['points'], numbers


def _inside(panel: PasskeyPanel) -> dict[str, Any]:
    by_seed = panel.inside_by_seed
    assert by_seed is not None
    return {'mean': float(by_seed.mean()), 'by_seed': by_seed.tolist()}


def _paper(panel: PasskeyPanel) -> dict[str, float]:
    return {} if panel.paper is None else {'paper': panel.paper / 100}


RULES: tuple[Rule[Panels], ...] = (
    Rule(
        PARTS_MATTER,
        'Mean accuracy inside the window with the full method exceeds that without the bound and '
        'that without the initialisation, those of them that are drawn, by more than '
        f'{PARTS_MATTER.thresholds["points"]:g} points (means over seeds).',
        _parts_matter,
    ),
    Rule(
        PASSKEY_REACH,
        f'Passkey retrieval works to at least {PASSKEY_REACH.thresholds["windows"]} windows for '
        'every model without position encoding, ablations aside; lengths are nominal. It works up '
        'to the longest length such that the mean accuracy over depths is at least '
        f'{PASSKEY_REACH.thresholds["accuracy"]} there and at every shorter length, 0 if there is '
        'none; panels that end earlier, and work to their end, decide nothing.',
        _reach,
    ),
    Rule(
        PASSKEY_INSIDE,
        'Mean accuracy over the cells inside the window (over seeds too) differs from the one that '
        f'the paper prints by at most {PASSKEY_INSIDE.thresholds["points"]:g} points, in every '
        'panel whose model the paper has; the others are readings.',
        _mean_inside,
    ),
)
