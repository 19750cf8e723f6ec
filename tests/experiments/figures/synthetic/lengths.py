"""Loss by length of the window: searches, RoPE scalings and fine-tuned models."""

from __future__ import annotations

import numpy as np

from nope.records import Measure, Records
from tests.experiments.figures.synthetic.making import attributes, saying

# The pilot's numbers at n/L = 1, 1.5, 2, 3, 4, 6, 8.
MULTIPLES = (1, 1.5, 2, 3, 4, 6, 8)
PILOT = {
    'base': (1.611, 1.604, 1.697, 1.987, 2.192, 2.467, 2.590),
    'uniform': (1.611, 1.594, 1.641, 1.788, 1.932, 2.222, 2.377),
    'headscale_4x': (1.729, 1.705, 1.726, 1.780, 1.892, 2.171, 2.344),
    'headscale_8x': (1.789, 1.755, 1.756, 1.790, 1.882, 2.101, 2.244),
    'log_length': (1.611, 1.596, 1.637, 1.760, 1.892, 2.154, 2.314),
}


@saying
def length_records(window, seed: int = 0, multiples=MULTIPLES, **changed) -> Records:
    """window: loss at each of `multiples` of L, shifted by seed; the tail rises by 0.4 a doubling
    more."""
    shift = np.random.default_rng(seed).normal(scale=0.02, size=len(multiples))
    window = np.array(window) + shift
    tail = window + 0.4 * np.log2(multiples)
    facts = attributes(seed=seed, **changed)
    lengths = np.array(multiples) * facts['train_length']
    axes = ('length',)
    return Records(
        facts | {'evaluation': 'lengths', 'length': int(lengths[-1])},
        {
            'loss_window': Measure(window, axes, 'nats'),
            'loss_tail': Measure(tail, axes, 'nats'),
            'multiplier_mean': Measure(np.ones(len(lengths)), axes, 'softmax scale'),
        },
        {'length': lengths.astype(int)},
    )


def length_runs(seeds: int) -> dict[str, Records]:
    return {
        f'{group}/seed{seed}': length_records(PILOT[group], seed, lam=group, multiplier=None)
        for group in PILOT
        for seed in range(seeds)
    }


def reaching(factor: float, *, cost: float, slope: float, floor: float = 1.3) -> np.ndarray:
    """Loss at MULTIPLES: level up to `factor` L, then rising by `slope` a doubling; `cost` for
    each doubling of the factor, at every length."""
    beyond = np.maximum(np.log2(np.array(MULTIPLES) / factor), 0)
    return floor + cost * np.log2(factor) + slope * beyond


ROPE = {'model': 'RoPE, 4 layers, width 64, 4 heads, 222k parameters', 'position': 'RoPE'}
LENGTH_CURVES = [
    {'group': 'base', 'label': 'base'},
    {'group': 'uniform', 'label': 'best uniform multiplier for each n'},
    {'group': 'headscale_4x', 'label': 'HeadScale searched at 4 L'},
    {'group': 'headscale_8x', 'label': 'HeadScale searched at 8 L'},
    {'group': 'log_length', 'label': 'log-length searched up to 4 L'},
]
LENGTH_ROLES = {
    'base': 'base',
    'uniform': 'uniform',
    'headscale': {4: 'headscale_4x', 8: 'headscale_8x'},
    'log_length': 'log_length',
}
FACTORS = (1, 2, 4, 8)
FACTOR_ROLES = {
    'ntk': 'dynamic NTK',
    'yarn': 'YaRN',
    'headscale': {8: 'NoPE, HeadScale searched at 8 L'},
}
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
    """RoPE without scaling, and with two methods at FACTORS on test and validation windows."""
    runs = {}
    for seed in range(seeds):
        rope = reaching(1, cost=0, slope=0.9)
        runs[f'rope/seed{seed}'] = length_records(rope, seed, split='test', **ROPE)
        runs[f'headscale_8x/seed{seed}'] = length_records(PILOT['headscale_8x'], seed, split='test')
        for method, shape in ZERO_SHOT.items():
            for factor in FACTORS:
                window = reaching(factor, **shape)
                facts = ROPE | {'position': f'RoPE, {method} x{factor}'}
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
            {
                'group': f'{method}_{budget}_{n}',
                'label': f'{method} at {n} L',
                'method': method,
                'tuned': n,
            }
            for method in ('PI', 'YaRN')
            for n in TUNED
        ],
    }
    for budget, (steps, _) in BUDGETS.items()
]
TUNED_ROLES = {'pi': 'PI', 'yarn': 'YaRN', 'fair': 'fair: 200 steps', 'raw': 'raw: 1,000 steps'}


def tuned_runs(seeds: int) -> dict[str, Records]:
    """Level up to the tuned length and steep past it; PI costs twice what YaRN does."""
    runs = {}
    for seed in range(seeds):
        rope = reaching(1, cost=0, slope=0.9)
        runs[f'rope/seed{seed}'] = length_records(rope, seed, **ROPE)
        for budget, (steps, cost) in BUDGETS.items():
            for method, share in (('PI', 1.0), ('YaRN', 0.5)):
                for n in TUNED:
                    facts = ROPE | {
                        'position': f'RoPE, {method} x{n}',
                        'tuning': f'fine-tuned for {steps} steps of 8 sequences of {64 * n}',
                    }
                    runs[f'{method}_{budget}_{n}/seed{seed}'] = length_records(
                        reaching(n, cost=share * cost, slope=1.2), seed, **facts
                    )
    return runs
