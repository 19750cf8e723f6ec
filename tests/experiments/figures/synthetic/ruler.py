"""Scores on RULER."""

from __future__ import annotations

import numpy as np

from experiments.figures import FigureInput
from nope.records import Measure, Records
from tests.experiments.figures.synthetic.keys import key_records
from tests.experiments.figures.synthetic.lengths import length_records
from tests.experiments.figures.synthetic.making import attributes, measured, measuring, saying
from tests.experiments.figures.synthetic.positions import positions_records


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


def recipe_input() -> FigureInput:
    """A checkpoint of L = 128 and the same under YaRN, which costs 0.01 nats at L and reads to
    2 L."""
    multiples, length = (1, 2, 4), {'train_length': 128}
    found, rows = {}, []
    for label, tail, shares, averages in (
        ('as it is', (1.3, 1.2, 1.9, 2.6), (1, 0.4, 0), (90, 70, 20)),
        ('YaRN 4', (1.31, 1.21, 1.24, 1.4), (1, 0.9, 0.5), (92, 88, 70)),
    ):
        loss = length_records(np.zeros(4), multiples=(0.5, *multiples), **length)
        records = {
            'ruler': ruler_records(averages, **length),
            'loss': measuring(loss, loss_tail=np.array(tail)),
            'entropy': positions_records(512, entropy_bend=160, **length),
            'keys': key_records(shares, multiples=multiples),
        }
        found |= {f'{label}_{name}': measured(record) for name, record in records.items()}
        rows.append({'label': label, **{name: f'{label}_{name}' for name in records}})
    return FigureInput('checkpoint', found, {'rows': rows})
