"""Scores on RULER."""

from __future__ import annotations

import numpy as np

from experiments.figures import FigureInput
from nope.records import Measure, Records
from tests.experiments.figures.synthetic.making import attributes, saying
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
