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


def length_records(window, seed: int = 0, **changed) -> Records:
    """window: loss at each of MULTIPLES, shifted by seed; the tail rises by 0.4 a doubling more."""
    shift = np.random.default_rng(seed).normal(scale=0.02, size=len(MULTIPLES))
    window = np.array(window) + shift
    tail = window + 0.4 * np.log2(MULTIPLES)
    facts = attributes(seed=seed, **changed)
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
        f'{group}/seed{seed}': length_records(PILOT[group], seed, scale=group, scale_value=None)
        for group in PILOT
        for seed in range(seeds)
    }


def reaching(factor: float, *, cost: float, slope: float, floor: float = 1.3) -> np.ndarray:
    """Loss at MULTIPLES: level up to `factor` L, then rising by `slope` a doubling; `cost` for
    each doubling of the factor, at every length."""
    beyond = np.maximum(np.log2(np.array(MULTIPLES) / factor), 0)
    return floor + cost * np.log2(factor) + slope * beyond


ROTARY = {'model': 'rotary, 4 layers, width 64, 4 heads, 222k parameters', 'position': 'rotary'}
FACTORS = (1, 2, 4, 8)
ZERO_SHOT = {'ntk': {'cost': 0.06, 'slope': 0.5}, 'yarn': {'cost': 0.02, 'slope': 0.2}}
FACTOR_CURVES = [
    {'label': 'RoPE', 'group': 'rope'},
    *(
        {
            'label': label,
            'grid': [
                {'factor': f, 'group': f'{name}_{f}', 'choice': f'{name}_{f}_choice'}
                for f in FACTORS
            ],
        }
        for name, label in (('ntk', 'dynamic NTK'), ('yarn', 'YaRN'))
    ),
    {'label': 'NoPE, HeadScale searched at 8 L', 'group': 'headscale_8x'},
]


def factor_runs(seeds: int) -> dict[str, Records]:
    """Rotary without scaling, and with two methods at FACTORS on test and validation windows."""
    runs = {}
    for seed in range(seeds):
        rope = reaching(1, cost=0, slope=0.9)
        runs[f'rope/seed{seed}'] = length_records(rope, seed, split='test', **ROTARY)
        runs[f'headscale_8x/seed{seed}'] = length_records(PILOT['headscale_8x'], seed, split='test')
        for method, shape in ZERO_SHOT.items():
            for factor in FACTORS:
                window = reaching(factor, **shape)
                facts = ROTARY | {'position': f'rotary, {method} x{factor}'}
                name = f'{method}_{factor}'
                runs[f'{name}/seed{seed}'] = length_records(window, seed, split='test', **facts)
                runs[f'{name}_choice/seed{seed}'] = length_records(
                    window + 0.03, seed, split='validation', **facts
                )
    return runs


TUNED = (2, 4, 8)
BUDGETS = {'fair': ('200', 0.06), 'raw': ('1,000', 0.02)}
TUNED_PANELS = [
    {
        'title': f'{budget}: {steps} steps',
        'curves': [
            {'group': f'{method}_{budget}_{n}', 'label': f'{method} at {n} L', 'tuned': n}
            for method in ('PI', 'YaRN')
            for n in TUNED
        ],
    }
    for budget, (steps, _) in BUDGETS.items()
]


def tuned_runs(seeds: int) -> dict[str, Records]:
    """Level up to the tuned length and steep past it; PI costs twice what YaRN does."""
    runs = {}
    for seed in range(seeds):
        rope = reaching(1, cost=0, slope=0.9)
        runs[f'rope/seed{seed}'] = length_records(rope, seed, **ROTARY)
        for budget, (steps, cost) in BUDGETS.items():
            for method, share in (('PI', 1.0), ('YaRN', 0.5)):
                for n in TUNED:
                    facts = ROTARY | {
                        'position': f'rotary, {method} x{n}',
                        'tuning': f'fine-tuned for {steps} steps of 8 sequences of {64 * n}',
                    }
                    runs[f'{method}_{budget}_{n}/seed{seed}'] = length_records(
                        reaching(n, cost=share * cost, slope=1.2), seed, **facts
                    )
    return runs


IMPORTED = {'origin': 'TinyLlama-1.1B', 'train_tokens': None, 'step': 0}


def extension_runs(**changed) -> dict[str, Records]:
    searched = {'scale': 'HeadScale at 256', 'scale_value': None}
    return {
        'original': positions_records(noise=0.05, **changed),
        'one_scale': positions_records(
            noise=0.05,
            scale='1.3',
            scale_value=1.3,
            loss_bend=110,
            entropy_bend=110,
            floor=1.56,
            **changed,
        ),
        'extended': positions_records(
            noise=0.05,
            loss_bend=150,
            entropy_bend=130,
            loss_slope=0.5,
            floor=1.54,
            **searched | changed,
        ),
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
    'factor_grid': FigureInput('zero_shot', factor_runs(3), {'curves': FACTOR_CURVES}),
    'tuned_lengths': FigureInput(
        'tuned',
        tuned_runs(3),
        {'base': {'group': 'rope', 'label': 'RoPE'}, 'panels': TUNED_PANELS},
    ),
    'extension': FigureInput(
        'extended',
        extension_runs(),
        {'before': 'original', 'uniform': 'one_scale', 'after': 'extended'},
    ),
}


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])
