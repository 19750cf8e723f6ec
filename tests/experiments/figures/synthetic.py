"""Records of models that do not exist, plausible in shape and exact where a test needs it."""

from __future__ import annotations

import csv
import pathlib

import numpy as np

from experiments.figures import FigureInput
from nope.records import Measure, Records


def attributes(**changed) -> dict:
    facts = {
        'run_id': 'nope-64-4x64-seed0-0123456789ab',
        'model': 'NoPE, 4 layers, width 64, 4 heads, 222k parameters',
        'position': 'none',
        'scale': '1',
        'scale_value': 1.0,
        'data': 'Python standard library sources',
        'split': 'validation',
        'train_length': 64,
        'train_tokens': 4_915_200,
        'windows': 512,
        'seed': 0,
        'step': 2400,
        'n_layers': 4,
        'n_heads': 4,
    }
    return facts | changed


def bent(positions, bend, slope, floor) -> np.ndarray:
    """`floor` plus a kink: 0 up to `bend`, then `slope` for each doubling."""
    return floor + slope * np.maximum(np.log2(positions / bend), 0)


def positions_records(
    length=256,
    *,
    loss_bend=80.0,
    entropy_bend=80.0,
    loss_slope=1.0,
    entropy_slope=1.5,
    floor=1.5,
    noise=0.0,
    **changed,
) -> Records:
    """Loss floor up to `loss_bend` and entropy on a line against ln i up to `entropy_bend`
    (positions), both rising by a slope per doubling beyond; entropy slope in bits."""
    facts = attributes(**changed) | {'evaluation': 'positions', 'length': length}
    layers, heads = facts['n_layers'], facts['n_heads']
    positions = np.arange(1, length + 1)
    rng = np.random.default_rng(0)
    loss = bent(positions, loss_bend, loss_slope, floor) + noise * rng.normal(size=length)
    bound = np.log(positions)
    # Heads at evenly spaced shares of the bound; layers shrink the share with depth.
    share = np.linspace(0.15, 0.6, heads)[None] * np.linspace(1.2, 0.7, layers)[:, None]
    kink = bent(positions, entropy_bend, entropy_slope, 0) * np.log(2)
    entropy = np.minimum(share[..., None] * bound + kink, bound)
    scale = facts['scale_value'] or 1 + (0.6 - share) * 1.5
    return Records(
        facts,
        {
            'loss': Measure(loss, ('position',), 'nats'),
            'loss_std': Measure(np.full(length, 2.3), ('position',), 'nats'),
            'entropy': Measure(entropy.astype(np.float32), ('layer', 'head', 'position'), 'nats'),
            'scale': Measure(
                np.broadcast_to(scale, (layers, heads)), ('layer', 'head'), '1/sqrt(head_dim)'
            ),
        },
        {'position': positions},
    )


def grid_records(length=256, *, a=0.35, increment=0.05, **changed) -> Records:
    """Loss a parabola in the scale around 1 + a ln(i / L), around 1 inside L."""
    facts = attributes(**changed) | {'evaluation': 'scale_grid', 'length': length}
    train_length = facts['train_length']
    positions = np.arange(1, length + 1)
    scales = np.round(np.arange(0.9, 2.0 + increment / 2, increment), 10)
    best = 1 + a * np.log(np.maximum(positions / train_length, 1))
    floor = 1.5 + 2.5 / positions + 0.2 * np.log2(np.maximum(positions / train_length, 1))
    loss = floor + 2.0 * np.square(scales[:, None] - best)
    chosen = scales[np.argmin(loss, axis=0)]
    fit = {'fit_a': a, 'fit_r2': 0.98, 'best_scale_window': 1.3, 'grid_split': 'validation'}
    return Records(
        facts | fit,
        {
            'loss': Measure(loss, ('scale', 'position'), 'nats'),
            'mean_loss': Measure(loss.mean(axis=1), ('scale',), 'nats'),
            'best_scale': Measure(chosen, ('position',), '1/sqrt(head_dim)'),
            'best_loss': Measure(loss.min(axis=0), ('position',), 'nats'),
        },
        {'scale': scales, 'position': positions},
    )


# The pilot's numbers at n/L = 1, 1.5, 2, 3, 4, 6, 8.
MULTIPLES = (1, 1.5, 2, 3, 4, 6, 8)
PILOT = {
    'base': (1.611, 1.604, 1.697, 1.987, 2.192, 2.467, 2.590),
    'uniform': (1.611, 1.594, 1.641, 1.788, 1.932, 2.222, 2.377),
    'headscale_4x': (1.729, 1.705, 1.726, 1.780, 1.892, 2.171, 2.344),
    'headscale_8x': (1.789, 1.755, 1.756, 1.790, 1.882, 2.101, 2.244),
    'log_length': (1.611, 1.596, 1.637, 1.760, 1.892, 2.154, 2.314),
}


def length_records(group: str, seed: int = 0, **changed) -> Records:
    shift = np.random.default_rng(seed).normal(scale=0.02, size=len(MULTIPLES))
    window = np.array(PILOT[group]) + shift
    tail = window + 0.4 * np.log2(MULTIPLES)
    facts = attributes(seed=seed, scale=group, scale_value=None, **changed)
    lengths = np.array(MULTIPLES) * facts['train_length']
    axes = ('length',)
    return Records(
        facts | {'evaluation': 'lengths', 'length': int(lengths[-1])},
        {
            'loss_window': Measure(window, axes, 'nats'),
            'loss_tail': Measure(tail, axes, 'nats'),
            'scale_mean': Measure(np.ones(len(lengths)), axes, '1/sqrt(head_dim)'),
        },
        {'length': lengths.astype(int)},
    )


def length_runs(seeds: int) -> dict[str, Records]:
    return {
        f'{group}/seed{seed}': length_records(group, seed)
        for group in PILOT
        for seed in range(seeds)
    }


def position_runs(**changed) -> dict[str, Records]:
    return {
        'nope': positions_records(**changed),
        'headscale': positions_records(
            scale='HeadScale at 256', scale_value=None, loss_bend=150, **changed
        ),
    }


GRIDS = {
    'early': grid_records(a=0.3, train_tokens=2_000_000),
    'late': grid_records(a=0.4),
}
CURVES = [{'record': 'nope', 'label': 'NoPE'}, {'record': 'headscale', 'label': 'HeadScale'}]
# One figure of each kind.
INPUTS = {
    'entropy_loss': FigureInput('fig1', position_runs(), {'panels': [{'curves': CURVES}]}),
    'heads': FigureInput('fig3', position_runs(), {'rows': CURVES, 'layers': [0, 3]}),
    'scale_entropy': FigureInput('fig5', position_runs(), {'record': 'headscale'}),
    'uniform_fit': FigureInput(
        'fig7', GRIDS, {'panels': [{'record': 'early', 'title': '2M'}, {'record': 'late'}]}
    ),
    'head_entropy': FigureInput('fig10', position_runs(), {}),
    'length_curves': FigureInput('fig_dynamic', length_runs(3), {}),
}


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])
