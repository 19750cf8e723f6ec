"""Means of each model over its runs, such as searches of several orders of examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nope.records import Records


def of_models(values_R: np.ndarray, records: Sequence[Records]) -> np.ndarray:
    """Means [S, ...] of values [R, ...], one a record: of each seed over the records that have it,
    seeds in their order. Runs of one model are alike, so that seeds alone are what an interval is
    taken over."""
    seeds = [records_of.attributes['seed'] for records_of in records]
    return np.stack(
        [
            np.mean([v for v, own in zip(values_R, seeds, strict=True) if own == seed], axis=0)
            for seed in dict.fromkeys(seeds)
        ]
    )
