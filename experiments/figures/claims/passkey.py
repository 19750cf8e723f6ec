"""Claims about passkey retrieval by length and depth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.claims import intervals
from experiments.figures.claims.catalogue import (
    ALIBI_PASSKEY_FAILS,
    NO_INIT_BEGINNING,
    PARTS_MATTER,
    PASSKEY_INSIDE,
    PASSKEY_REACH,
    ROTARY_PASSKEY_FAILS,
)
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import Numbers, apart, decisive, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.margins import all_decide
from experiments.figures.read.passkey_panel import PasskeyPanel
from experiments.figures.roles import Roles, Shape, Undecided

FULL, NO_BOUND, NO_INIT, NOPE = 'full', 'no_bound', 'no_init', 'nope'
ROTARY, ALIBI = 'rotary', 'alibi'
ABLATED: Mapping[str, Shape] = {FULL: Shape.ONE, NO_BOUND: Shape.ONE, NO_INIT: Shape.ONE}
ROLES: Mapping[str, Shape] = {
    **ABLATED,
    NOPE: Shape.SEVERAL,  # models without position encoding, ablations aside
    ROTARY: Shape.ONE,  # as it was trained
    ALIBI: Shape.SEVERAL,
}

WITHOUT: Mapping[str, str] = {NO_BOUND: 'without bound', NO_INIT: 'without initialisation'}

Panels = Roles[PasskeyPanel]


def _parts_matter(roles: Panels) -> Measured:
    """Of the full method and one ablation or both."""
    panels = {FULL: roles[FULL]} | {r: p for r in (NO_BOUND, NO_INIT) if (p := roles.get(r))}
    _works_inside(panels[FULL])
    means = {role: p.inside_mean for role, p in panels.items() if p.inside_mean is not None}
    if FULL not in means or len(means) < 2:
        raise Undecided(
            f'{FULL!r} and one of {NO_BOUND!r} and {NO_INIT!r} need prompts inside the window, '
            f'there are of {list(means)}'
        )
    inside = {
        role: _inside(panels[role]) | {'paper': PARTS_MATTER.numbers[role] / 100} for role in means
    }
    shares = {role: np.array(found['by_seed']) for role, found in inside.items()}
    drops = {
        role: Interval.of(100 * apart(shares[FULL], share))
        for role, share in shares.items()
        if role != FULL
    }
    measured = {'inside_window': inside, 'full_minus_other_points': intervals.stated(drops)}
    limit = PARTS_MATTER.thresholds['points']
    holds = intervals.every(drop.above(limit) for drop in drops.values())
    numbers = [number(f'full - {WITHOUT[role]}', drop, 'points') for role, drop in drops.items()]
    return measured, holds, tuple(numbers)


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
    reaches = {p.label: np.array(p.reach_by_seed(least)) / p.context for p in chosen}
    verdicts = {
        p.label: _works_to(reaches[p.label], windows) if p in decided else None for p in chosen
    }
    numbers = decisive('shortest reach', reaches, 'windows', highest=False, verdicts=verdicts)
    numbers = _with_ends(numbers, chosen, least)
    if not decided:
        return measured, None, numbers
    return measured, intervals.every(verdicts[p.label] for p in decided), numbers


def _works_to(reach_S: np.ndarray, windows: float) -> bool | None:
    """Whether it does for every seed, or for none."""
    enough = reach_S >= windows - 1e-9
    return bool(enough[0]) if (enough == enough[0]).all() else None


def _mean_inside(roles: Panels) -> Measured:
    panels = [p for p in roles.players.values() if p.inside_mean is not None]
    if not panels:
        raise Undecided('no panel has prompts inside its window')
    measured = {p.label: _inside(p) | _paper(p) for p in panels}
    away = {
        p.label: Interval.of(100 * p.inside_by_seed - p.paper)
        for p in panels
        if p.inside_by_seed is not None and p.paper is not None
    }
    if not away:
        raise Undecided('the paper prints no mean of the models that are drawn')
    limit = PASSKEY_INSIDE.thresholds['points']
    holds = intervals.every(found.near(0, limit) for found in away.values())
    furthest = max(away, key=lambda label: abs(away[label].mean))
    what = f"furthest from the paper's mean, {furthest}"
    return measured, holds, (number(what, away[furthest], 'points'),)


def _rotary_fails(roles: Panels) -> Measured:
    panel, limits = roles[ROTARY], ROTARY_PASSKEY_FAILS.thresholds
    _works_inside(panel)
    # A multiple of L such as 1.1 is not exact in binary.
    beyond = panel.lengths >= limits['windows'] * panel.train_length - 1e-6
    if not beyond.any():
        raise Undecided(f'{panel.label!r} has no prompts from {limits["windows"]:g} L on')
    by_length = {
        f'at {length / panel.train_length:g} L': Interval.of(accuracy_S)
        for length, accuracy_S in zip(
            panel.lengths[beyond], panel.by_seed[:, beyond].mean(axis=2).T, strict=True
        )
    }
    holds = intervals.every(found.below(limits['accuracy']) for found in by_length.values())
    percent = {place: 100 * np.array(found.by_seed) for place, found in by_length.items()}
    numbers = decisive('most keys repeated', percent, '%', highest=True)
    return {'accuracy_beyond': intervals.stated(by_length)}, holds, numbers


def _alibi_fails(roles: Panels) -> Measured:
    least, windows = (ALIBI_PASSKEY_FAILS.thresholds[k] for k in ('accuracy', 'windows'))
    panels = roles.several(ALIBI)
    for panel in panels:
        _works_inside(panel)
        if panel.lengths[-1] < windows * panel.context:
            raise Undecided(f'{panel.label!r} has no prompts of {windows:g} windows')
    reaches = {p.label: Interval.of(np.array(p.reach_by_seed(least)) / p.context) for p in panels}
    holds, numbers = all_decide(
        'furthest reach', reaches, 'windows', lambda reach: reach.below(windows), highest=True
    )
    numbers = _with_ends(numbers, panels, least)
    return {'reach_over_window': intervals.stated(reaches)}, holds, numbers


def _with_ends(numbers: Numbers, panels: Sequence[PasskeyPanel], least: float) -> Numbers:
    """Reaches of panels, with a note on those that work to the end of their prompts: how far they
    work is then not known."""
    whole = {
        p.label for p in panels if all(reach == p.lengths[-1] for reach in p.reach_by_seed(least))
    }
    return tuple(
        dataclasses.replace(n, note='the end of its prompts')
        if n.what.partition(', ')[2] in whole
        else n
        for n in numbers
    )


def _beginning(roles: Panels) -> Measured:
    """By prompts that are longer than L and within the window of the search."""
    panel, limits = roles[NO_INIT], NO_INIT_BEGINNING.thresholds
    lengths = panel.inside & (panel.lengths > panel.train_length)
    start = panel.depths < limits['share'] - 1e-9
    if not lengths.any() or not start.any() or start.all():
        raise Undecided(f'{panel.label!r} has no such prompts beyond L inside its window')
    near, far = (
        panel.by_seed[:, lengths][:, :, depths].mean(axis=(1, 2)) for depths in (start, ~start)
    )
    least = PASSKEY_REACH.thresholds['accuracy']
    if near.mean() < least:
        raise Undecided(
            f'{panel.label!r} repeats {100 * near.mean():.0f} % of the keys at the beginning, not '
            f'{100 * least:g} %'
        )
    ahead, others = Interval.of(100 * (near - far)), Interval.of(far)
    measured = {'beginning_minus_others_points': ahead.stated(), 'others': others.stated()}
    holds = intervals.every(
        (ahead.above(limits['points']), others.below(limits['accuracy'])),
    )
    numbers = (
        number('keys at the beginning', 100 * near, '%'),
        number('others', 100 * far, '%'),
    )
    return measured, holds, numbers


def _works_inside(panel: PasskeyPanel) -> None:
    """Undecided for a model that does not retrieve inside its window: it has nothing to lose."""
    mean, least = panel.inside_mean, PASSKEY_REACH.thresholds['accuracy']
    if mean is None or mean < least:
        share = 'none' if mean is None else f'{100 * mean:.0f} %'
        raise Undecided(
            f'{panel.label!r} repeats {share} of the keys inside its window, not {100 * least:g} %'
        )


def _inside(panel: PasskeyPanel) -> dict[str, Any]:
    by_seed = panel.inside_by_seed
    assert by_seed is not None
    return {'mean': float(by_seed.mean()), 'by_seed': by_seed.tolist()}


def _paper(panel: PasskeyPanel) -> dict[str, float]:
    return {} if panel.paper is None else {'paper': panel.paper / 100}


RULES: tuple[Rule[Panels], ...] = (
    Rule(
        PARTS_MATTER,
        'Mean accuracy inside the window with the full method, which repeats at least '
        f'{100 * PASSKEY_REACH.thresholds["accuracy"]:g} % of the keys there, exceeds that without '
        'the bound and that without the initialisation, those of them that are drawn, by more than '
        f'{PARTS_MATTER.thresholds["points"]:g} points; {intervals.RULE}.',
        _parts_matter,
    ),
    Rule(
        PASSKEY_REACH,
        f'Passkey retrieval works to at least {PASSKEY_REACH.thresholds["windows"]} windows for '
        'every model without position encoding, ablations aside; lengths are nominal. It works up '
        'to the longest length such that the mean accuracy over depths is at least '
        f'{PASSKEY_REACH.thresholds["accuracy"]} there and at every shorter length, 0 if there is '
        'none. Decided for each seed; where seeds disagree nothing is, nor by panels that end '
        'earlier and work to their end.',
        _reach,
    ),
    Rule(
        PASSKEY_INSIDE,
        'Mean accuracy over the cells inside the window (over seeds too) differs from the one that '
        f'the paper prints by at most {PASSKEY_INSIDE.thresholds["points"]:g} points, in every '
        f'panel whose model the paper has; {intervals.RULE}.',
        _mean_inside,
    ),
    Rule(
        ROTARY_PASSKEY_FAILS,
        'The rotary model as trained, which repeats at least '
        f'{100 * PASSKEY_REACH.thresholds["accuracy"]:g} % of the keys inside L, repeats less than '
        f'{100 * ROTARY_PASSKEY_FAILS.thresholds["accuracy"]:g} % (accuracy '
        f'{ROTARY_PASSKEY_FAILS.thresholds["accuracy"]:g}) at every length from '
        f'{ROTARY_PASSKEY_FAILS.thresholds["windows"]:g} L on; {intervals.RULE}.',
        _rotary_fails,
    ),
    Rule(
        ALIBI_PASSKEY_FAILS,
        f'No model with ALiBi works to {ALIBI_PASSKEY_FAILS.thresholds["windows"]:g} windows, with '
        'an accuracy as in the claim that models without position encoding do; each works inside '
        f'its window; {intervals.RULE}.',
        _alibi_fails,
    ),
    Rule(
        NO_INIT_BEGINNING,
        'In prompts longer than L and within the window of the search, without the initialisation '
        f'keys in the first {100 * NO_INIT_BEGINNING.thresholds["share"]:g} % of the text (share '
        f'{NO_INIT_BEGINNING.thresholds["share"]:g}) are repeated more often than the others, by '
        f'more than {NO_INIT_BEGINNING.thresholds["points"]:g} points, and fewer than half of the '
        'others are; a model that repeats fewer than '
        f'{100 * PASSKEY_REACH.thresholds["accuracy"]:g} % of those at the beginning decides '
        f'nothing, and {intervals.RULE}.',
        _beginning,
    ),
)
