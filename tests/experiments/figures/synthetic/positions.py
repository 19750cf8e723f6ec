"""Loss, entropy and weights by position, and grids of multipliers."""

from __future__ import annotations

import dataclasses

import numpy as np

from experiments.figures import FigureInput
from nope.records import Measure, Records
from tests.experiments.figures.synthetic.making import attributes, bent, saying


@saying
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
    multiplier = facts['multiplier'] or 1 + (0.6 - share) * 1.5
    return Records(
        facts,
        {
            'loss': Measure(loss, ('position',), 'nats'),
            'loss_std': Measure(np.full(length, 2.3), ('position',), 'nats'),
            'entropy': Measure(entropy.astype(np.float32), ('layer', 'head', 'position'), 'nats'),
            'multiplier': Measure(
                np.broadcast_to(multiplier, (layers, heads)), ('layer', 'head'), 'softmax scale'
            ),
        },
        {'position': positions},
    )


@saying
def grid_records(length=256, *, a=0.35, increment=0.05, **changed) -> Records:
    """Loss a parabola in the multiplier around 1 + a ln(i / L), around 1 inside L."""
    facts = attributes(**changed) | {'evaluation': 'multiplier_grid', 'length': length}
    train_length = facts['train_length']
    positions = np.arange(1, length + 1)
    multipliers = np.round(np.arange(0.9, 2.0 + increment / 2, increment), 10)
    best = 1 + a * np.log(np.maximum(positions / train_length, 1))
    floor = 1.5 + 2.5 / positions + 0.2 * np.log2(np.maximum(positions / train_length, 1))
    loss = floor + 2.0 * np.square(multipliers[:, None] - best)
    chosen = multipliers[np.argmin(loss, axis=0)]
    fit = {'fit_a': a, 'fit_r2': 0.98, 'best_multiplier_window': 1.3, 'grid_split': 'validation'}
    return Records(
        facts | fit,
        {
            'loss': Measure(loss, ('multiplier', 'position'), 'nats'),
            'mean_loss': Measure(loss.mean(axis=1), ('multiplier',), 'nats'),
            'best_multiplier': Measure(chosen, ('position',), 'softmax scale'),
            'best_loss': Measure(loss.min(axis=0), ('position',), 'nats'),
        },
        {'multiplier': multipliers, 'position': positions},
    )


IMPORTED = {'origin': 'TinyLlama-1.1B', 'train_tokens': None, 'step': 0}


def position_runs(**changed) -> dict[str, Records]:
    return {
        'nope': positions_records(**changed),
        'headscale': positions_records(
            lam='HeadScale at 256', multiplier=None, loss_bend=150, **changed
        ),
    }


GRIDS = {'early': grid_records(a=0.3, train_tokens=2_000_000), 'late': grid_records(a=0.4)}
CURVES = [{'record': 'nope', 'label': 'NoPE'}, {'record': 'headscale', 'label': 'HeadScale'}]
CURVE_ROLES = {'base': 'nope', 'headscale': {4: 'headscale'}}
SHAPE_CURVES = ({'record': 'base', 'label': 'base'}, {'record': 'split', 'label': 'half local'})


@saying
def shape_records(length=256, *, local_heads=0, **changed) -> Records:
    """Weights that spread with the length, in local heads not."""
    facts = attributes(**changed) | {'evaluation': 'attention_shape', 'length': length}
    facts |= {'span': facts['train_length']}
    layers, heads, train_length = (facts[k] for k in ('n_layers', 'n_heads', 'train_length'))
    positions = np.arange(1, length + 1)
    without = np.broadcast_to(np.arange(heads) >= local_heads, (layers, heads))
    spread = np.where(without[..., None], np.log(positions), np.log(np.minimum(positions, 16)))
    near = np.minimum(train_length / positions, 1)
    by_head = {
        'entropy': 0.6 * spread,
        'first': np.exp(-spread),
        'local': np.where(without[..., None], near, 1.0),
        'norm': np.exp(-0.3 * spread),
    }
    axes = ('layer', 'head', 'position')
    return Records(
        facts,
        {
            'loss': Measure(bent(positions, 80.0, 1.0, 1.5), ('position',), 'nats'),
            **{name: Measure(values, axes, '') for name, values in by_head.items()},
            'global': Measure(without.astype(np.float32), ('layer', 'head'), ''),
        },
        {'position': positions},
    )


def ranks_input(seeds: int = 3) -> FigureInput:
    """Two models at three steps, heads in an order of their own at each of them."""
    records, rng = {}, np.random.default_rng(0)
    groups = [(f'{label}_{step}', label, step) for label in 'ab' for step in (1, 240, 2400)]
    for group, step in [*((g, step) for g, _, step in groups), ('a_again', 2400)]:
        for seed in range(seeds):
            made = positions_records(step=step, seed=seed, run_id=f'{group[0]}-{seed}')
            order = rng.permuted(np.tile(np.arange(1, 5), (4, 1)), axis=1)[..., None]
            nats = Measure(made['entropy'][:1, :1] * order, ('layer', 'head', 'position'), 'nats')
            measures = {**made.measures, 'entropy': nats}
            records[f'{group}/seed{seed}'] = dataclasses.replace(made, measures=measures)
    steps = [{'group': group, 'label': label} for group, label, _ in groups]
    options = {'steps': steps, 'again': [{'group': 'a_again', 'label': 'a'}]}
    return FigureInput('initialisations', records, options)


def emergence_input(steps=(24, 240, 2400), labels=('NoPE', 'RoPE'), length=256) -> FigureInput:
    """Models whose loss falls inside L, and rises earlier beyond it, as they are trained."""
    records = {
        f'{label}_{step}': positions_records(
            length,
            loss_bend=300 - 80 * k,
            floor=4 - k,
            step=step,
            train_tokens=2048 * step,
            run_id=f'{label}-run',
        )
        for label in labels
        for k, step in enumerate(steps)
    }
    shown = [{'record': f'{m}_{step}', 'label': m} for m in labels for step in steps]
    return FigureInput('emergence', records, {'steps': shown})


def _matched(name: str, width: int) -> dict:
    parts = {'base': 'nope', 'uniform': 'one', 'headscale': 'heads', 'rope': 'rope'}
    return {'width': width, **{part: f'{kind}_{name}' for part, kind in parts.items()}}


MATCHED = {
    'widths': [_matched(f'{width}', width) for width in (64, 128, 256)],
    'tokens': [_matched(name, 128) for name in ('128_few', '128', '128_many')],
}


def matched_input() -> FigureInput:
    """Models whose loss falls with width and tokens. RoPE is lower inside L and rises earlier;
    multipliers lower what is beyond."""
    tokens = {'few': 1_000_000, 'many': 16_000_000}
    sizes = {64: '228k', 128: '858k', 256: '3.3M'}
    how = {
        'nope': {'loss_bend': 80.0},
        'one': {'loss_bend': 80.0, 'loss_slope': 0.6, 'multiplier': 1.3, 'lam': '1.3'},
        'heads': {'loss_bend': 80.0, 'loss_slope': 0.4, 'multiplier': None, 'lam': 'HeadScale'},
        'rope': {'loss_bend': 66.0, 'position': 'RoPE, base 10000'},
    }
    records = {}
    for entry in (entry for entries in MATCHED.values() for entry in entries):
        name, width = entry['base'].removeprefix('nope_'), entry['width']
        read = tokens.get(name.rpartition('_')[2], 4_915_200)
        floor = 2 - 0.1 * np.log2(width / 64) - 0.05 * np.log2(read / 1e6)
        for kind, changed in how.items():
            lower = 0.1 if kind == 'rope' else 0.0
            own = f'{kind}_{name}'
            model = f'{kind}, 4 layers, width {width}, 4 heads, {sizes[width]} parameters'
            facts = {'model': model, 'train_tokens': read, 'run_id': own, **changed}
            records[own] = positions_records(floor=floor - lower, **facts)
    return FigureInput('matched', records, MATCHED)
