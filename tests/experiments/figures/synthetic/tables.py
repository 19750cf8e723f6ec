"""Perplexity, LongBench, commonsense and ablations."""

from __future__ import annotations

import dataclasses

import numpy as np

from nope.records import Measure, Records
from tests.experiments.figures.synthetic.keys import passkey_records
from tests.experiments.figures.synthetic.lengths import ROPE
from tests.experiments.figures.synthetic.making import TEXT, attributes, saying

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


def longppl_records(values, *, multiples=(2, 4), **changed):
    """LongPPL of texts of `multiples` of L; NaN where no token is key."""
    found = perplexity_records(values, multiples=multiples)
    facts = {'evaluation': 'longppl', 'short': 2048, 'stride': 512, 'gain': 2.0, 'ceiling': 2.0}
    measures = {
        'loss': found.measures['loss'],
        'key_loss': found.measures['loss'],
        'longppl': found.measures['perplexity'],
        'key_tokens': found.measures['windows'],
    }
    attributes = {**found.attributes, **facts, 'evaluator': 'YaRN', **changed}
    return dataclasses.replace(found, attributes=attributes, measures=measures)


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
            **(ROPE if name.startswith(('rope', 'ntk', 'yarn', 'pi')) else {}) | changed,
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
    'rope': 'RoPE',
    'ntk': 'dynamic NTK',
    'yarn': 'YaRN',
    'uniform': {2: 'uniform 1.2', 4: 'uniform 1.5', 8: 'uniform 1.8'},
    'headscale': {2: 'HeadScale 2 L', 4: 'HeadScale 4 L', 9: 'HeadScale 9 L'},
}
PERPLEXITY_OPTIONS = {'corpora': CORPORA, 'rows': PERPLEXITY_ROWS, 'roles': PERPLEXITY_ROLES}
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
