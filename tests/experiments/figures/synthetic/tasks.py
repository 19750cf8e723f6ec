"""Exact match on synthetic tasks, scratchpads, distances of attention."""

from __future__ import annotations

import dataclasses

import numpy as np

from experiments.figures import FigureInput
from nope.records import Measure, Records
from tests.experiments.figures.synthetic.making import attributes, saying

# Accuracies beyond L of the paper's encodings on three tasks; each length of 2 L has one less.
ENCODINGS = {'RoPE': 'RoPE', 'ALiBi': 'ALiBi', 'T5 bias': 'T5', 'sine': 'APE', 'NoPE': 'NoPE'}
DISTANCES = {'RoPE': 0.6, 'ALiBi': 0.4, 'T5': 0.2, 'APE': 0.5, 'NoPE': 0.2}
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
    facts |= {'longest': longest, 'longest_read': longest, 'n_layers': 4, 'scratchpad': scratchpad}
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


def encoding_runs(seeds, tasks=None, spread=0.01, **changed) -> dict[str, Records]:
    """Records '<task>_<place of the encoding>/<seed>'."""
    return {
        f'{task}_{e}/{seed}': exact_match_records(
            beyond - spread * seed, task=task, seed=seed, run_id=f'{task}-{e}-{seed}', **changed
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


@saying
def attended_records(far, *, task='addition', longest=4, **changed) -> Records:
    """Of lengths L + 1 to 2 L: the share `far` of the queries in the last of ten bins, the others
    in the first; a tenth of `far` less in the first head of each layer."""
    facts = attributes(**changed) | {'evaluation': 'attended_distance', 'task': task}
    facts |= {'longest': longest, 'shortest_read': longest + 1, 'longest_read': 2 * longest}
    facts |= {'sequences': 40, 'queries': 800}
    share = np.zeros((facts['n_layers'], facts['n_heads'], 10))
    share[..., -1], share[..., 0] = far, 1 - far
    share[:, 0, -1] -= far / 10
    share[:, 0, 0] += far / 10
    return Records(
        facts,
        {
            'share': Measure(share, ('layer', 'head', 'bin'), 'share'),
            'distance': Measure(0.95 * share[..., -1], ('layer', 'head'), 'share of the context'),
        },
        {'bin': np.arange(10) / 10},
    )


def attended_input(seeds=3) -> FigureInput:
    """Farther with every encoding, and with every seed."""
    records = {
        f'{paper}/{seed}': attended_records(
            0.1 * (1 + e) + 0.01 * seed, seed=seed, run_id=f'{paper}-{seed}'
        )
        for e, paper in enumerate(ENCODINGS.values())
        for seed in range(seeds)
    }
    curves = [{'group': paper, 'label': x, 'paper': paper} for x, paper in ENCODINGS.items()]
    return FigureInput('b_attended', records, {'curves': curves})


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


# Accuracies beyond L as the base, a searched model and another one have them.
LAMBDA_ROLES = {'NoPE': 'base', 'HeadScale': 'searched', 'RoPE': 'other'}


def lambda_input(seeds=3, gain=0.2) -> FigureInput:
    """Tasks on which the searched model gains as much beyond 1.5 L as `gain` says."""
    tasks = {task: (values[0], values[0] + gain, 0.1) for task, values in ENCODING_TASKS.items()}
    curves = [
        {'group': f'{task}_{e}', 'label': label, 'role': role}
        for task in tasks
        for e, (label, role) in enumerate(LAMBDA_ROLES.items())
    ]
    runs = encoding_runs(seeds, tasks)
    for name, found in runs.items():
        if '_1/' in name:  # HeadScale; L is 4
            facts = {**found.attributes, 'longest_read': 6}
            runs[name] = dataclasses.replace(found, attributes=facts)
    return FigureInput('b_lambda', runs, {'curves': curves})
