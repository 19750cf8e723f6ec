"""Bootstrap over evaluation windows (Efron 1979): how often each one counts in every resample.

A resample draws as many windows as were measured, with replacement, and is measured as they were.
Its draws follow from their number alone: what several models read on the same windows is resampled
in pairs, so that a difference between two models keeps what the text has in common.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nope.records import RESAMPLE, RESAMPLED, Measure

RESAMPLES = 200
LEAST = 16  # windows: resamples of fewer say little about others


def counts(drawn: int) -> np.ndarray | None:
    """How often each of `drawn` windows, or documents, is in each resample: float32 [drawn,
    RESAMPLES], columns that add up to `drawn`. None for fewer than LEAST."""
    if drawn < LEAST:
        return None
    # Of all of numpy's generators the one whose numbers later versions may not change.
    generator = np.random.RandomState(drawn)
    picked_RW = generator.randint(drawn, size=(RESAMPLES, drawn))
    counts_RW = [np.bincount(picked_W, minlength=drawn) for picked_W in picked_RW]
    return np.stack(counts_RW, axis=1).astype(np.float32)


def of_cells(scores_CN: np.ndarray) -> np.ndarray | None:
    """Mean scores of every resample of the N prompts of each of C cells: float32 [RESAMPLES, C].
    None for one prompt a cell.

    N - 1 are drawn of each cell, with replacement: means of N would spread too little, by a share
    1 / N of their variance (Rao and Wu 1988), which of few prompts is much.
    """
    cells, prompts = scores_CN.shape
    if prompts < 2:
        return None
    generator = np.random.RandomState(prompts)
    picked_RCN = generator.randint(prompts, size=(RESAMPLES, cells, prompts - 1))
    found_RCN = np.take_along_axis(scores_CN[None], picked_RCN, axis=2)
    return found_RCN.mean(axis=2, dtype=np.float32)


def measures(found: Mapping[str, np.ndarray | None], axis: str) -> dict[str, Measure]:
    """Measures of every resample beside those of the names they have in `found`: [RESAMPLES, n]
    along `axis`, in nats. None of those that are None."""
    return {
        name + RESAMPLED: Measure(values.astype(np.float32), (RESAMPLE, axis), 'nats')
        for name, values in found.items()
        if values is not None
    }
