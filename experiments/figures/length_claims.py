"""What is claimed of the ways to choose lambda, tested on losses by sequence length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figures.base import Claim
from experiments.figures.length_group import Group, by_length

BASE, UNIFORM, LOG_LENGTH = 'base', 'uniform', 'log_length'
LEVEL_NATS = 0.01
RISE_NATS = 0.1


def from_groups(groups: Sequence[Group]) -> list[Claim]:
    """Every claim that `groups` can bear."""
    tests = (same_inside, cost_inside, beats_uniform, beyond_tuned, level_everywhere, best)
    found = [test(groups) for test in tests]
    return [claim for claim in found if claim is not None]


def same_inside(groups: Sequence[Group]) -> Claim | None:
    base, log = _named(groups, BASE), _named(groups, LOG_LENGTH)
    if base is None or log is None or not (base.multiples <= 1).any():
        return None
    inside = base.multiples <= 1
    difference = max(
        float(np.abs(a[:, inside] - b[:, inside]).max())
        for a, b in ((base.window, log.window), (base.tail, log.tail))
    )
    return Claim(
        None,
        'Ours, not of the paper: p = 1 + a ln(max(n/L, 1)) leaves the model untouched up to L.',
        {'largest_difference_nats': difference},
        difference == 0,
        'log-length equals the base model exactly at every n <= L measured, for every seed.',
    )


def cost_inside(groups: Sequence[Group]) -> Claim | None:
    base = _named(groups, BASE)
    searched = [g for g in groups if g.is_headscale]
    index = None if base is None else base.at(1)
    if base is None or index is None or not searched:
        return None
    costs = {g.label: g.window[:, index] - base.window[:, index] for g in searched}
    measured = {k: {'mean': v.mean(), 'by_seed': v.tolist()} for k, v in costs.items()}
    return Claim(
        7,
        'HeadScale hurts short positions, though less than a uniform scale for the same length: '
        'PG19 at 2K from 14.6 to 14.8, 15.7 and 18.3 (0.01, 0.07 and 0.23 nats) for scales '
        'searched at 2 L, 4 L and 9 L.',
        {'headscale_minus_base_at_L_nats': measured},
        all(bool((v > 0).all()) for v in costs.values()),
        'HeadScale raises the mean loss of windows of length L for every seed.',
    )


def beats_uniform(groups: Sequence[Group]) -> Claim | None:
    uniform = _named(groups, UNIFORM)
    measured: dict[str, Any] = {}
    holds = True
    for g in groups:
        index = g.at(g.tuned) if g.tuned is not None and g.is_headscale else None
        if uniform is None or index is None:
            continue
        difference = g.window[:, index] - uniform.window[:, index]
        measured[g.label] = {'mean': difference.mean(), 'by_seed': difference.tolist()}
        holds &= bool(difference.mean() < 0)
    if not measured:
        return None
    return Claim(
        7,
        'HeadScale beats the uniform scale at its target length.',
        {'headscale_minus_uniform_nats': measured},
        holds,
        'At the length of its search HeadScale has the lower mean loss over the window, on '
        'average over seeds, than the best uniform scale for that length.',
    )


def beyond_tuned(groups: Sequence[Group]) -> Claim | None:
    measured = {}
    rises = []
    for g in groups:
        if g.tuned is None or not g.is_headscale:
            continue
        target, twice = g.at(g.tuned), g.at(2 * g.tuned)
        if target is None or twice is None:
            continue
        rise = float((g.tail[:, twice] - g.tail[:, target]).mean())
        measured[g.label] = rise
        rises.append(rise)
    if not rises:
        return None
    return Claim(
        10,
        'HeadScale does not extrapolate past its tuned length in perplexity: 8K scales go from '
        '21.1 at 8K to 721.7 at 16K (PG19), 3.5 nats.',
        {'rise_from_tuned_to_twice_nats': measured},
        all(rise > RISE_NATS for rise in rises),
        'The loss of the last L/2 positions at twice the length of the search exceeds that at the '
        f'length of the search by more than {RISE_NATS} nats.',
    )


def level_everywhere(groups: Sequence[Group]) -> Claim | None:
    log = _named(groups, LOG_LENGTH)
    others = [g for g in groups if g.name != LOG_LENGTH]
    if log is None or not others:
        return None
    margin = log.window.mean(0) - np.min([g.window.mean(0) for g in others], axis=0)
    return Claim(
        None,
        'Ours, not of the paper: one set of coefficients serves every length.',
        {'log_length_minus_best_other_nats': by_length(log.multiples, margin)},
        bool((margin <= LEVEL_NATS).all()),
        'At every n the mean loss over the window with log-length is at most '
        f'{LEVEL_NATS} nats above the best of the other curves (means over seeds).',
    )


def best(groups: Sequence[Group]) -> Claim | None:
    """Who is lowest at each length, for both measures: a reading, nothing to decide."""
    if len(groups) < 2:
        return None
    measured: dict[str, Any] = {}
    for measure in ('window', 'tail'):
        losses = np.stack([getattr(g, measure).mean(axis=0) for g in groups])
        order = np.argsort(losses, axis=0, kind='stable')
        low = np.take_along_axis(losses, order, axis=0)
        measured[measure] = {
            f'{m:g} L': {
                'best': groups[order[0, i]].label,
                'ahead_of_next_nats': low[1, i] - low[0, i],
                'loss_nats': {g.label: losses[j, i] for j, g in enumerate(groups)},
            }
            for i, m in enumerate(groups[0].multiples)
        }
    return Claim(
        None,
        '',
        measured,
        None,
        'The lowest mean loss at each length n, over the window and over its last L/2 positions '
        '(means over seeds; at a tie the first curve is named).',
    )


def _named(groups: Sequence[Group], name: str) -> Group | None:
    return next((g for g in groups if g.name == name), None)
