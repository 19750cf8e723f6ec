"""Records of models that do not exist, plausible in shape and exact where a test needs it."""

from __future__ import annotations

import csv
import dataclasses
import functools
import pathlib
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from experiments.evaluations import KINDS
from experiments.figures import FigureInput
from nope.records import Measure, Records


def measured(records: Records) -> Records:
    """The records with the attribute `measured_on` as their evaluation says it."""
    facts, kind = records.attributes, KINDS[records.attributes['evaluation']]
    # What the sentences take from a spec and not from its records.
    spec = SimpleNamespace(
        extent=int(max(records.along('length', 0), default=0)),
        reach='up to ' if facts['evaluation'] == 'lengths' else '',
        needles=facts.get('needles', 1),
        alike=facts.get('alike', False),
        haystack=facts.get('haystack', 'filler'),
        windows=() if 'task' in facts else ('some',),
    )
    what, how = kind.measured_on(spec, records)  # type: ignore[arg-type]
    own_text = kind.own_text.fget(spec)  # type: ignore[attr-defined]
    said = {'what': what, 'how': how, 'own_text': own_text}
    return dataclasses.replace(records, attributes={**facts, 'measured_on': said})


def saying(make: Callable[..., Records]) -> Callable[..., Records]:
    @functools.wraps(make)
    def made(*given, **changed) -> Records:
        return measured(make(*given, **changed))

    return made


def attributes(**changed) -> dict:
    facts = {
        'run_id': 'nope-64-4x64-seed0-0123456789ab',
        'model': 'NoPE, 4 layers, width 64, 4 heads, 222k parameters',
        'position': 'none',
        'lam': '1',
        'multiplier': 1.0,
        'data': 'Python standard library sources',
        'split': 'validation',
        'token': 'token',
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
                np.broadcast_to(multiplier, (layers, heads)), ('layer', 'head'), '1/sqrt(head_dim)'
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
            'best_multiplier': Measure(chosen, ('position',), '1/sqrt(head_dim)'),
            'best_loss': Measure(loss.min(axis=0), ('position',), 'nats'),
        },
        {'multiplier': multipliers, 'position': positions},
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


@saying
def length_records(window, seed: int = 0, multiples=None, **changed) -> Records:
    """window: loss at each of `multiples` of L, shifted by seed; the tail rises by 0.4 a doubling
    more. multiples: None for MULTIPLES, as they are then."""
    multiples = MULTIPLES if multiples is None else multiples
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
            'multiplier_mean': Measure(np.ones(len(lengths)), axes, '1/sqrt(head_dim)'),
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


ROTARY = {'model': 'rotary, 4 layers, width 64, 4 heads, 222k parameters', 'position': 'rotary'}
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
TUNED_ROLES = {
    'pi': 'PI',
    'yarn': 'YaRN',
    'fair': 'fair: 200 steps',
    'raw': 'raw: 1,000 steps',
}


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
    searched = {'lam': 'HeadScale at 256', 'multiplier': None}
    return {
        'original': positions_records(noise=0.05, **changed),
        'one_multiplier': positions_records(
            noise=0.05,
            lam='1.3',
            multiplier=1.3,
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
            lam='HeadScale at 256', multiplier=None, loss_bend=150, **changed
        ),
    }


# Of evaluations by text: models of the paper's length.
TEXT = {'train_length': 2048}
WINDOWS = (1, 2, 4, 8)


@saying
def perplexity_records(perplexity, *, corpus='pg19', multiples=WINDOWS, **changed) -> Records:
    """perplexity: in sliding windows of each of `multiples` of L; 2^21 tokens scored for each."""
    facts = attributes(**TEXT | changed)
    lengths = np.array(multiples) * facts['train_length']
    values = np.array(perplexity, dtype=np.float64)
    axes = ('length',)
    protocol = {'evaluation': 'perplexity', 'stride': 256, 'scored': 2**21, 'bos': True}
    return Records(
        facts | protocol | {'corpus': corpus},
        {
            'loss': Measure(np.log(values), axes, 'nats'),
            'perplexity': Measure(values, axes, ''),
            'windows': Measure(np.full(len(lengths), 2**13), axes, ''),
            'documents': Measure(np.arange(20, 20 + len(lengths)), axes, ''),
        },
        {'length': lengths.astype(int)},
    )


def grid_accuracy(lengths, reach, share=1.0, depths=10) -> np.ndarray:
    """[length, depth], in tenths: `share` up to `reach` tokens, falling to none at twice that."""
    beyond = np.clip(2 - np.array(lengths) / reach, 0, 1)
    return np.repeat(np.round(share * beyond, 1)[:, None], depths, axis=1)


@saying
def passkey_records(
    max_length=4096, *, window=2048, reach=None, share=1.0, accuracy=None, **changed
) -> Records:
    """Lengths in 16 equal steps up to `max_length`, without those that have no room for a prompt.

    accuracy: [length, depth]; where it is not given, `grid_accuracy` with the `reach` (default:
    the window) and the `share` found inside it.
    """
    lengths = np.array([n for n in max_length * np.arange(1, 17) // 16 if n > 120])
    if accuracy is None:
        accuracy = grid_accuracy(lengths, reach or window, share)
    depth = np.arange(10) / 10
    facts = {
        'evaluation': 'passkey',
        'max_length': max_length,
        'window': window,
        'template': 'paper',
        'tests': 10,
        'bos': True,
    }
    return Records(
        attributes(**TEXT | changed) | facts,
        {
            'accuracy': Measure(np.asarray(accuracy), ('length', 'depth'), ''),
            'tokens': Measure(71 + 24 * ((lengths - 80) // 25), ('length',), ''),
        },
        {'length': lengths, 'depth': depth},
    )


PASSKEY_PANELS = [
    {'record': 'rope', 'label': 'RoPE'},
    {'record': 'full/', 'label': 'HeadScale at 2 L', 'paper': 81},
    {'record': 'no_init/', 'label': 'without initialisation'},
    {'label': 'MPT-7B', 'missing': 'there are no weights'},
]
PASSKEY_ROLES = {
    'full': 'HeadScale at 2 L',
    'no_init': 'without initialisation',
    'nope': ['HeadScale at 2 L'],
}


def passkey_runs(seeds=2) -> dict[str, Records]:
    """Rotary up to its window, and HeadScale at 2 L with an ablation."""
    runs = {'rope': passkey_records(reach=1100, **ROTARY)}
    for name, share in (('full', 1.0), ('no_init', 0.3)):
        for seed in range(seeds):
            runs[f'{name}/seed{seed}'] = passkey_records(
                8192, window=4096, share=share - 0.1 * seed, lam='HeadScale at 4096', seed=seed
            )
    return runs


# Share of keys at multiples of L, as measured in a first look.
KEY_MULTIPLES = (1, 2, 4, 8, 16, 32, 64)
KEYS = {
    'nope': (1.0, 0.23, 0.0, 0.0, 0.0, 0.0, 0.0),
    'forget': (1.0, 0.59, 0.26, 0.08, 0.0, 0.0, 0.0),
    'half': (1.0, 1.0, 1.0, 0.98, 0.91, 0.55, 0.2),
    'half_log': (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    'half_log_four': (1.0, 0.97, 0.97, 0.95, 0.93),
}
FOUR = {'needles': 4, 'alike': False, 'haystack': 'filler', 'template': 'brief_named'}
KEY_CURVES = [
    {'group': 'nope', 'label': 'NoPE'},
    {'group': 'forget', 'label': 'forget gates'},
    {'group': 'half', 'label': 'half forget gates, half NoPE'},
    {'group': 'half_log', 'label': 'the same, log-length lambda'},
    {'group': 'half_log_four', 'label': 'the same, one of four keys'},
]
KEY_ROLES = {'split': 'half_log', 'split_four': 'half_log_four'}


@saying
def key_records(shares, seed: int = 0, *, multiples=KEY_MULTIPLES, **changed) -> Records:
    """shares: at the first of `multiples` L, the same at every depth."""
    lengths = np.array(multiples[: len(shares)]) * 128
    facts = attributes(seed=seed, train_length=128)
    facts |= {'evaluation': 'passkey', 'max_length': int(lengths[-1]), 'window': 128}
    facts |= {'template': 'brief', 'tests': 10, 'bos': False}
    accuracy = np.repeat(np.array(shares, dtype=np.float64)[:, None], 10, axis=1)
    return Records(
        facts | changed,
        {
            'accuracy': Measure(accuracy, ('length', 'depth'), ''),
            'tokens': Measure(lengths - 14.0, ('length',), ''),
        },
        {'length': lengths, 'depth': np.arange(10) / 10},
    )


def key_runs(seeds: int) -> dict[str, Records]:
    """Seeds differ where keys are neither all repeated nor all lost."""
    return {
        f'{group}/seed{seed}': key_records(
            [s if s in (0, 1) else min(s + 0.02 * seed, 1) for s in shares],
            seed,
            **(FOUR if group.endswith('_four') else {}),
        )
        for group, shares in KEYS.items()
        for seed in range(seeds)
    }


# Loss at L and at 8 L and share of keys at 8 L, None where it was not asked; a first look's.
FRONTIER = {
    'NoPE': (1.873, 2.407, 0.0),
    'rotary': (1.341, 3.153, 0.0),
    'ALiBi': (1.401, 1.395, 0.1),
    'T5 bias': (1.360, 2.720, None),
    'sinusoidal': (1.430, 3.800, None),
    'rotary, YaRN': (1.345, 1.620, 0.2),
    'NoPE, HeadScale searched at 8 L': (2.021, 2.037, 0.15),
    'forget gates': (1.335, 1.323, 0.08),
    'half forget gates, half NoPE': (1.343, 1.326, 0.98),
    'half forget gates, half NoPE, log-length lambda': (1.343, 1.345, 1.0),
    'half ALiBi, half NoPE': (1.408, 1.395, 0.99),
    'half ALiBi, half NoPE, log-length lambda': (1.408, 1.415, 1.0),
    'scale-invariant, p-RoPE': (1.334, 1.319, 0.85),
    'scale-invariant, p-RoPE, log-length lambda': (1.334, 1.321, 0.98),
}
FRONTIER_POINTS = [
    {
        'label': label,
        'loss': f'p{i}_loss',
        'keys': None if share is None else f'p{i}_keys',
        **({'four': f'p{i}_four'} if label.endswith('NoPE, log-length lambda') else {}),
    }
    for i, (label, (_, _, share)) in enumerate(FRONTIER.items())
]
FRONTIER_ROLES = {
    'split': 'half forget gates, half NoPE, log-length lambda',
    'rotary': 'rotary',
}


def frontier_runs(seeds: int) -> dict[str, Records]:
    """Losses of a straight line in ln(n / L); keys that are lost on the way to 8 L stay lost."""
    runs = {}
    for point, (first, last, share) in zip(FRONTIER_POINTS, FRONTIER.values(), strict=True):
        for seed in range(seeds):
            window = first + (last - first) * np.log2(MULTIPLES) / 3
            facts = {'seed': seed, 'train_length': 128, 'run_id': f'{point["loss"]}-{seed}'}
            runs[f'{point["loss"]}/seed{seed}'] = length_records(window, **facts)
            end = share if share == 1 else 0.0
            if share is not None:
                shares = (1.0, 1.0, 1.0, share, end, end, end)
                runs[f'{point["keys"]}/seed{seed}'] = key_records(shares, **facts)
            if 'four' in point:
                facts |= FOUR
                runs[f'{point["four"]}/seed{seed}'] = key_records((1.0, 1, 1, 0.95, 0.9), **facts)
    return runs


# Of four layers of four heads the first two are local. Without head (layer, head) -> rise of the
# loss at every length, keys left at L and at 8 L.
HEADS = {(i, j): (0.1 - 0.05 * (j // 2), 1.0, 1.0) for i in range(4) for j in range(4)}
HEADS[2, 3] = (0.02, 0.9, 0.25)
HEAD_GROUPS = {
    'local': ([(i, j) for i in range(4) for j in (0, 1)], (2.0, 0.0, 0.0)),
    'nope': ([(i, j) for i in range(4) for j in (2, 3)], (0.4, 0.0, 0.0)),
}


def effect_point(name: str) -> dict[str, str]:
    return {'label': f'without {name}', 'loss': f'{name}_loss', 'keys': f'{name}_keys'}


def effect_options() -> dict:
    return {
        'base': effect_point('nothing'),
        'heads': [effect_point(f'{i}.{j}') for i, j in HEADS],
        'groups': [effect_point(name) for name in HEAD_GROUPS],
        'roles': {name: f'without {name}' for name in HEAD_GROUPS},
    }


def effect_runs(seeds: int, heads: dict = HEADS, groups: dict = HEAD_GROUPS) -> dict[str, Records]:
    runs = {}
    silenced = {'nothing': ([], (0.0, 1.0, 1.0))}
    silenced |= {f'{i}.{j}': ([(i, j)], lost) for (i, j), lost in heads.items()}
    for name, (gone, (rise, near, far)) in {**silenced, **groups}.items():
        for seed in range(seeds):
            facts = {'seed': seed, 'train_length': 128, 'run_id': f'{name}-{seed}'}
            facts |= {'silenced': [list(head) for head in gone]} if gone else {}
            loss = length_records(np.full(len(MULTIPLES), 1.4 + rise), **facts)
            runs[f'{name}_loss/seed{seed}'] = loss
            keys = key_records((near, far, far, far), **facts)
            for shape in ('n_layers', 'n_heads'):  # which passkey records do not have
                del keys.attributes[shape]
            runs[f'{name}_keys/seed{seed}'] = keys
    return runs


LONGBENCH = (
    *('narrativeqa', 'qasper', 'multifieldqa_en', 'hotpotqa', '2wikimqa', 'musique'),
    *('gov_report', 'qmsum', 'multi_news', 'trec', 'triviaqa', 'samsum'),
    *('passage_count', 'passage_retrieval_en', 'lcc', 'repobench-p'),
)
HARNESS = {
    'arc_challenge': 'acc_norm',
    'arc_easy': 'acc_norm',
    'boolq': 'acc',
    'hellaswag': 'acc_norm',
    'openbookqa': 'acc_norm',
    'piqa': 'acc_norm',
    'winogrande': 'acc',
}


@saying
def longbench_records(scores, *, datasets=LONGBENCH, max_length=1500, **changed) -> Records:
    """scores: 0..100, one for each of `datasets`."""
    values = np.array(scores, dtype=np.float64)
    facts = {'evaluation': 'longbench', 'max_length': max_length, 'beams': 5}
    return Records(
        attributes(**TEXT | changed) | facts | {'average': float(values.mean())},
        {
            'score': Measure(values, ('dataset',), 'percent'),
            'samples': Measure(np.full(len(values), 200), ('dataset',), ''),
        },
        {'dataset': np.array(datasets)},
    )


@saying
def harness_records(scores, *, tasks=tuple(HARNESS), **changed) -> Records:
    """scores: percent, one for each of `tasks`."""
    values = np.array(scores, dtype=np.float64)
    metrics = [HARNESS.get(task, 'acc') for task in tasks]
    facts = {'evaluation': 'harness', 'metrics': metrics, 'bos': False}
    return Records(
        attributes(**TEXT | changed) | facts | {'average': float(values.mean())},
        {
            'score': Measure(values, ('task',), 'percent'),
            'acc': Measure(values - 1, ('task',), 'percent'),
            'samples': Measure(np.full(len(values), 1000), ('task',), ''),
        },
        {'task': np.array(tasks)},
    )


# Perplexity on PG19 in windows of L, 2 L, 4 L and 8 L; that on proof-pile is its square root.
PERPLEXITY = {
    'nope': (14.9, 310.2, 1204.0, 1530.0),
    'rope': (14.8, 505.1, 470.3, 640.9),
    'ntk_2': (14.8, 15.1, 190.0, 410.0),
    'ntk_4': (15.0, 15.3, 23.9, 160.0),
    'ntk_8': (15.4, 15.6, 24.4, 78.8),
    'yarn_2': (14.8, 14.9, 60.2, 202.0),
    'yarn_8': (15.0, 15.0, 15.4, 17.6),
    'pi_fair_8': (19.1, 18.8, 18.5, 18.6),
    'yarn_raw_8': (15.3, 15.0, 14.8, 14.7),
    'uniform_1.2': (15.3, 16.4, 480.0, 1100.0),
    'uniform_1.5': (19.5, 20.9, 47.1, 240.0),
    'uniform_1.8': (31.2, 44.0, 70.6, 189.5),
    'headscale_2': (14.9, 15.6, 390.0, 1250.0),
    'headscale_4': (16.0, 15.7, 20.6, 700.0),
    'headscale_9': (18.6, 19.2, 19.1, 31.7),
    'free': (18.9, 19.0, 18.6, 26.4),
    'cold': (18.2, 19.4, 19.6, 32.5),
}
CORPORA = (
    {'key': 'pg19', 'label': 'PG19', 'paper': 'pg19'},
    {'key': 'proof_pile', 'label': 'proof-pile', 'paper': 'proof_pile'},
)


def perplexity_runs(seeds=2, names=PERPLEXITY, **changed) -> dict[str, Records]:
    """Seeds differ by one percent."""
    return {
        f'{name}@{corpus}/seed{seed}': perplexity_records(
            1.01**seed * np.array(PERPLEXITY[name]) ** power,
            corpus=corpus,
            seed=seed,
            **(ROTARY if name.startswith(('rope', 'ntk', 'yarn', 'pi')) else {}) | changed,
        )
        for name in names
        for corpus, power in (('pg19', 1.0), ('proof_pile', 0.5))
        for seed in range(seeds)
    }


def table_rows(group, *rows, **more) -> tuple[dict, ...]:
    """Rows of a group from (label, name in the paper's table, name of the records)."""
    return tuple(
        {'group': group, 'label': label, 'paper': paper, 'record': f'{record}/'} | more
        for label, paper, record in rows
    )


PERPLEXITY_ROWS = (
    *table_rows('Original models', ('RoPE', 'RoPE', 'rope'), ('NoPE', 'NoPE', 'nope')),
    {
        'group': 'Original models',
        'label': 'BLOOM 1.1B',
        'paper': 'BLOOM-1.1B',
        'missing': 'its weights are not at hand',
    },
    *(
        {
            'group': 'RoPE, extended',
            'label': label,
            'paper': paper,
            'choices': tuple({'factor': f, 'record': f'{name}_{f}/'} for f in factors),
        }
        for label, paper, name, factors in (
            ('dynamic NTK', 'NTK_zero', 'ntk', (2, 4, 8)),
            ('YaRN', 'YaRN_zero', 'yarn', (2, 8)),
        )
    ),
    *table_rows(
        'RoPE, extended', ('PI, fair', 'PI_fair_16K', 'pi_fair_8'), tuned=8, tokens=26214400
    ),
    *table_rows(
        'RoPE, extended', ('YaRN, raw', 'YaRN_raw_16K', 'yarn_raw_8'), tuned=8, tokens=131072000
    ),
    *table_rows(
        'NoPE, extended',
        *((f'uniform {c}', f'uniform_{c}', f'uniform_{c}') for c in (1.2, 1.5, 1.8)),
    ),
    *(
        row
        for n, name in ((2, '4K'), (4, '8K'), (9, '18K'))
        for row in table_rows(
            'NoPE, extended',
            (f'HeadScale {n} L', f'headscale_{name}', f'headscale_{n}'),
            tuned=n,
            tokens=3276800 * n,
        )
    ),
)
PERPLEXITY_ROLES = {
    'base': 'NoPE',
    'rotary': 'RoPE',
    'ntk': 'dynamic NTK',
    'yarn': 'YaRN',
    'uniform': {2: 'uniform 1.2', 4: 'uniform 1.5', 8: 'uniform 1.8'},
    'headscale': {2: 'HeadScale 2 L', 4: 'HeadScale 4 L', 9: 'HeadScale 9 L'},
}
PERPLEXITY_OPTIONS = {
    'corpora': CORPORA,
    'rows': PERPLEXITY_ROWS,
    'roles': PERPLEXITY_ROLES,
}

SCORES = np.array([4, 7, 19, 5, 9, 3, 26, 9, 22, 33, 24, 16, 1.5, 2.5, 48, 44.0])
PARTS = {'headscale_9': 0.8, 'free': 0.5, 'cold': 0.3}  # the share of pass keys found


def longbench_runs(seeds=2) -> dict[str, Records]:
    return {
        f'{name}_longbench/seed{seed}': longbench_records(SCORES + more + seed / 2, seed=seed)
        for name, more in (('rope', 0.0), ('nope', 1.0), ('headscale_9', 0.25))
        for seed in range(seeds)
    }


LONGBENCH_ROWS = (
    *table_rows('Original models', ('RoPE', 'RoPE', 'rope_longbench')),
    *table_rows('Original models', ('NoPE', 'NoPE', 'nope_longbench')),
    {'group': 'RoPE, extended', 'label': 'PI, raw', 'paper': 'PI_raw_4K', 'missing': 'not tuned'},
    *table_rows(
        'NoPE, extended', ('HeadScale 9 L', 'headscale_18K', 'headscale_9_longbench'), tuned=9
    ),
)


def harness_runs(seeds=2) -> dict[str, Records]:
    scores = np.array([24.1, 45.2, 58.9, 43.0, 30.6, 67.7, 53.0])
    return {
        f'{name}_tasks/seed{seed}': harness_records(scores + more + seed / 4, seed=seed)
        for name, more in (('rope', 0.0), ('nope', 0.5))
        for seed in range(seeds)
    }


HARNESS_ROWS = table_rows('', ('RoPE', 'RoPE', 'rope_tasks'), ('NoPE', 'NoPE', 'nope_tasks'))


def ablation_runs(seeds=2) -> dict[str, Records]:
    passkeys = {
        f'{name}_passkey/seed{seed}': passkey_records(
            32768, window=18432, share=share - 0.1 * seed, seed=seed
        )
        for name, share in PARTS.items()
        for seed in range(seeds)
    }
    return passkeys | longbench_runs(seeds) | perplexity_runs(seeds, PARTS)


ABLATION_ROWS = tuple(
    {
        'label': label,
        'paper': paper,
        'perplexity': f'{name}/',
        'passkey': f'{name}_passkey/',
        'longbench': 'headscale_9_longbench/' if name == 'headscale_9' else '',
    }
    for label, paper, name in (
        ('HeadScale', 'headscale_18K', 'headscale_9'),
        ('without the constraint', 'without_focus_constraint', 'free'),
        ('without the uniform start', 'without_initialization', 'cold'),
    )
)
ABLATION_OPTIONS = {
    'corpora': CORPORA,
    'rows': ABLATION_ROWS,
    'missing': {'longbench': 'LongBench was not run'},
    'roles': {
        'full': 'HeadScale',
        'no_bound': 'without the constraint',
        'no_init': 'without the uniform start',
    },
}


GRIDS = {
    'early': grid_records(a=0.3, train_tokens=2_000_000),
    'late': grid_records(a=0.4),
}
CURVES = [{'record': 'nope', 'label': 'NoPE'}, {'record': 'headscale', 'label': 'HeadScale'}]
CURVE_ROLES = {'base': 'nope', 'headscale': {4: 'headscale'}}
# One figure of each kind.
SHAPE_CURVES = (
    {'record': 'base', 'label': 'base'},
    {'record': 'split', 'label': 'half local'},
)


@saying
def shape_records(length=256, *, local_heads=0, **changed) -> Records:
    """Weights that spread with the length, in local heads not."""
    facts = attributes(**changed) | {'evaluation': 'attention_shape', 'length': length}
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


# Accuracies beyond L of the paper's encodings on three tasks; each length of 2 L has one less.
ENCODINGS = {'rotary': 'Rotary', 'ALiBi': 'ALiBi', 'T5 bias': 'T5', 'sine': 'APE', 'NoPE': 'NoPE'}
DISTANCES = {'Rotary': 0.6, 'ALiBi': 0.4, 'T5': 0.2, 'APE': 0.5, 'NoPE': 0.2}
ENCODING_TASKS = {
    'rsc': (0.3, 0.5, 0.7, 0.1, 0.9),
    'rdc': (0.4, 0.6, 0.7, 0.2, 0.8),
    'scan': (0.3, 0.4, 0.6, 0.2, 0.5),
}


@saying
def exact_match_records(
    beyond, inside=1.0, *, task='rsc', longest=4, scratchpad='none', **changed
) -> Records:
    """Of lengths 2 to 2 L: `inside` up to L, then `beyond`, each a number or one a length. Of
    scratchpads, where there are any, half as many are right in every step, and all parse."""
    facts = attributes(**changed) | {'evaluation': 'exact_match', 'task': task, 'limit': 64}
    lengths = np.arange(2, 2 * longest + 1)
    accuracy = np.where(lengths <= longest, inside, beyond).astype(float)
    ends = {'inside': float(np.mean(inside)), 'beyond': float(np.mean(beyond))}
    measures = {
        'accuracy': Measure(accuracy, ('length',), ''),
        'samples': Measure(np.full(len(lengths), 50), ('length',), ''),
    }
    if scratchpad != 'none':
        measures['parsed'] = Measure(np.ones(len(lengths)), ('length',), '')
        measures['reasoned'] = Measure(accuracy / 2, ('length',), '')
        facts['right_unparsed'] = 0
    facts |= {'longest': longest, 'n_layers': 4, 'scratchpad': scratchpad}
    return Records(facts | ends, measures, {'length': lengths})


# Task -> format -> accuracy beyond L with each of ENCODINGS.
SCRATCHPADS = {
    'addition': {
        'none': (0.0, 0.1, 0.1, 0.0, 0.1),
        'full': (0.1, 0.15, 0.3, 0.05, 0.35),
        'minimal': (0.05, 0.1, 0.2, 0.05, 0.2),
    },
    'parity': {
        'none': (0.6, 0.6, 0.7, 0.5, 0.8),
        'full': (0.1, 0.2, 0.3, 0.0, 0.4),
        'minimal': (0.3, 0.4, 0.5, 0.1, 0.5),
    },
}


def scratchpad_input(seeds=3, tasks=None, spread=0.01) -> FigureInput:
    """Records '<task>_<format>_<place of the encoding>/<seed>' of SCRATCHPADS, or of `tasks`."""
    runs, curves = {}, []
    for task, some in (tasks or SCRATCHPADS).items():
        for name, values in some.items():
            for e, (label, paper) in enumerate(ENCODINGS.items()):
                group = f'{task}_{name}_{e}'
                curves.append({'group': group, 'label': label, 'paper': paper})
                for seed in range(seeds):
                    runs[f'{group}/{seed}'] = exact_match_records(
                        values[e] + spread * seed,
                        task=task,
                        seed=seed,
                        run_id=f'{group}-{seed}',
                        scratchpad=name,
                    )
    return FigureInput('b_scratchpad', runs, {'curves': curves})


def encoding_runs(seeds, tasks=None, spread=0.01) -> dict[str, Records]:
    """Records '<task>_<place of the encoding>/<seed>'."""
    return {
        f'{task}_{e}/{seed}': exact_match_records(
            beyond - spread * seed, task=task, seed=seed, run_id=f'{task}-{e}-{seed}'
        )
        for task, values in (tasks or ENCODING_TASKS).items()
        for e, beyond in enumerate(values)
        for seed in range(seeds)
    }


def encoding_curves(tasks=None) -> list[dict[str, str]]:
    return [
        {'group': f'{task}_{e}', 'label': label, 'paper': paper}
        for task in (tasks or ENCODING_TASKS)
        for e, (label, paper) in enumerate(ENCODINGS.items())
    ]


@saying
def distance_records(beyond, inside=0.1, *, task='rsc', longest=4, **changed) -> Records:
    """Of lengths 2 to 2 L, or windows of L to 8 L for a task of None: `inside` up to L, then
    `beyond`, a tenth less in layer 0 and a tenth more in the last."""
    facts = attributes(**changed) | {'evaluation': 'attention_distance', 'queries': None}
    facts |= {'other': 'NoPE, 4 layers', 'other_run_id': 'nope', 'other_seed': 0, 'other_heads': 4}
    lengths = np.arange(2, 2 * longest + 1)
    if task is None:
        longest = facts['train_length']
        lengths = longest * np.array([1, 2, 4, 8])
    else:
        facts |= {'task': task, 'longest': longest}
    means = np.where(lengths <= longest, inside, beyond).astype(float)
    layers = np.linspace(0.9, 1.1, facts['n_layers'])
    return Records(
        facts,
        {
            'distance': Measure(means[:, None] * layers, ('length', 'layer'), 'nats'),
            'released': Measure(2 * means[:, None] * layers, ('length', 'layer'), 'nats'),
            'pairs': Measure(
                (means[:, None] * layers)[..., None, None] * (1 + np.arange(16).reshape(4, 4)),
                ('length', 'layer', 'head', 'other'),
                'nats',
            ),
            'examples': Measure(np.full(len(lengths), 10), ('length',), ''),
        },
        {'length': lengths},
    )


def distance_input(distances=None, seeds=3, spread=0.01, task='rsc') -> FigureInput:
    """Distances beyond L of each of `DISTANCES`, apart by `spread` from seed to seed."""
    found = DISTANCES if distances is None else distances
    records = {
        f'{paper}/{seed}': distance_records(
            beyond + spread * seed, task=task, seed=seed, run_id=f'{paper}-{seed}'
        )
        for paper, beyond in found.items()
        for seed in range(seeds)
    }
    curves = [{'group': paper, 'label': f'the {paper}', 'paper': paper} for paper in found]
    return FigureInput('b_attention', records, {'curves': curves})


@saying
def ruler_records(averages, lengths=(128, 256, 512), tasks=('vt', 'fwe'), **changed) -> Records:
    """Scores of tasks around an average for each length."""
    average = np.array(averages, float)
    apart = np.linspace(-1, 1, len(tasks))
    facts = attributes(**changed) | {'evaluation': 'ruler', 'samples': 20, 'bos': False}
    effective = [n for n, x in zip(lengths, average, strict=True) if x > 85.6]
    of_base = [n for n, x in zip(lengths, average, strict=True) if x >= 0.85 * average[0]]
    facts |= {'effective_length': max(effective, default=0)}
    facts |= {'effective_length_of_base': max(of_base, default=0)}
    axes = ('length', 'task')
    tokens = np.tile(0.9 * np.array(lengths)[:, None], len(tasks))
    return Records(
        facts,
        {
            'score': Measure(average[:, None] + apart, axes, '0..100'),
            'average': Measure(average, ('length',), '0..100'),
            'tokens': Measure(tokens, axes, ''),
            'samples': Measure(np.full((len(lengths), len(tasks)), 20), axes, ''),
        },
        {'length': np.array(lengths), 'task': np.array(tasks)},
    )


def ruler_input(before=(90, 70, 20), after=(92, 88, 70)) -> FigureInput:
    """A model and a changed one, the first with its loss by position."""
    records = {
        'before': ruler_records(before),
        'before_loss': positions_records(loss_bend=100),
        'after': ruler_records(after, lam='1.2', multiplier=1.2),
    }
    panels = [
        {'record': 'before', 'label': 'as it is', 'loss': 'before_loss'},
        {'record': 'after', 'label': 'scaled'},
    ]
    return FigureInput('ruler', records, {'panels': panels})


# Accuracies beyond L as the base, a searched model and another one have them.
LAMBDA_ROLES = {'NoPE': 'base', 'HeadScale': 'searched', 'rotary': 'other'}


def lambda_input(seeds=3, gain=0.2) -> FigureInput:
    """Two tasks on which the searched model gains as much beyond 1.5 L as `gain` says."""
    tasks = {task: (values[0], values[0] + gain, 0.1) for task, values in ENCODING_TASKS.items()}
    curves = [
        {'group': f'{task}_{e}', 'label': label, 'role': role}
        for task in tasks
        for e, (label, role) in enumerate(LAMBDA_ROLES.items())
    ]
    return FigureInput('b_lambda', encoding_runs(seeds, tasks), {'curves': curves, 'until': 1.5})


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


INPUTS = {
    'entropy_loss': FigureInput(
        'fig1', position_runs(), {'panels': [{'curves': CURVES}], 'roles': CURVE_ROLES}
    ),
    'heads': FigureInput('fig3', position_runs(), {'rows': CURVES, 'layers': [0, 3]}),
    'multiplier_entropy': FigureInput(
        'fig5', position_runs(), {'record': 'headscale', 'control': 'nope'}
    ),
    'uniform_fit': FigureInput(
        'fig7', GRIDS, {'panels': [{'record': 'early', 'title': '2M'}, {'record': 'late'}]}
    ),
    'head_entropy': FigureInput('fig10', position_runs(), {}),
    'attention_shape': FigureInput(
        'shape',
        {'base': shape_records(), 'split': shape_records(local_heads=2)},
        {'curves': SHAPE_CURVES},
    ),
    'emergence': emergence_input(),
    'length_curves': FigureInput(
        'fig_dynamic', length_runs(3), {'curves': LENGTH_CURVES, 'roles': LENGTH_ROLES}
    ),
    'key_curves': FigureInput(
        'split_passkey', key_runs(3), {'curves': KEY_CURVES, 'roles': KEY_ROLES}
    ),
    'frontier': FigureInput(
        'frontier', frontier_runs(3), {'points': FRONTIER_POINTS, 'roles': FRONTIER_ROLES}
    ),
    'encoding_ranks': FigureInput('b_mrr', encoding_runs(3), {'curves': encoding_curves()}),
    'task_lambda': lambda_input(),
    'attention_distance': distance_input(),
    'scratchpad_bars': scratchpad_input(),
    'ruler_scores': ruler_input(),
    'head_effects': FigureInput('split_heads', effect_runs(2), effect_options()),
    'factor_grid': FigureInput(
        'zero_shot', factor_runs(3), {'curves': FACTOR_CURVES, 'roles': FACTOR_ROLES}
    ),
    'tuned_lengths': FigureInput(
        'tuned',
        tuned_runs(3),
        {
            'base': {'group': 'rope', 'label': 'RoPE'},
            'panels': TUNED_PANELS,
            'roles': TUNED_ROLES,
        },
    ),
    'extension': FigureInput(
        'extended',
        extension_runs(),
        {'before': 'original', 'uniform': 'one_multiplier', 'after': 'extended'},
    ),
    'perplexity_table': FigureInput('table2', perplexity_runs(), PERPLEXITY_OPTIONS),
    'longbench_table': FigureInput(
        'table3',
        longbench_runs(),
        {'rows': LONGBENCH_ROWS, 'roles': {'base': 'NoPE', 'rotary': 'RoPE'}},
    ),
    'commonsense_table': FigureInput(
        'table1',
        harness_runs(),
        {'rows': HARNESS_ROWS, 'roles': {'base': 'NoPE', 'rotary': 'RoPE'}},
    ),
    'ablation_table': FigureInput('table4', ablation_runs(), ABLATION_OPTIONS),
    'passkey_maps': FigureInput(
        'fig6', passkey_runs(), {'panels': PASSKEY_PANELS, 'roles': PASSKEY_ROLES}
    ),
}


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])
