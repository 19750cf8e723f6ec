"""Means of records over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nope.records import RESAMPLE, Measure, Records

BY_SEED = '_by_seed'  # ends the names of measures that pooled records have besides


def pool(records: Sequence[Records]) -> Records:
    """Means of the same evaluation over seeds; beside them loss and entropy of every seed, [S, T].

    Attributes are the first one's; numbers that differ are means (None where a seed has none), and
    `seed` and a `lam` that differs are those of all.
    """
    first = records[0]
    measures = {
        name: Measure(np.stack([r[name] for r in records]).mean(axis=0), measure.axes, measure.unit)
        for name, measure in first.measures.items()
        if RESAMPLE not in measure.axes
    }
    if 'position' in first.measures['loss'].axes[:1]:
        measures['loss' + BY_SEED] = Measure(
            np.stack([r['loss'] for r in records]), ('seed', 'position'), 'nats'
        )
    if 'entropy' in first.measures:
        entropy_ST = np.stack([r['entropy'].mean(axis=(0, 1)) for r in records])
        measures['entropy' + BY_SEED] = Measure(entropy_ST, ('seed', 'position'), 'nats')
    # Records of an earlier version may lack some.
    shared = [name for name in first.attributes if all(name in r.attributes for r in records)]
    attributes = {name: _pooled_fact(name, records) for name in shared}
    return Records(attributes, measures, first.coordinates)


def _pooled_fact(name: str, records: Sequence[Records]) -> Any:
    values = [r.attributes[name] for r in records]
    if name == 'seed' or (name == 'lam' and len(set(values)) > 1):
        return tuple(values)
    if all(isinstance(value, float) for value in values):
        return float(np.mean(values))
    return None if None in values else values[0]
