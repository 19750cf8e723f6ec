"""Bootstrap of evaluations (Efron 1979): how often each window counts in every resample.

Windows of one document are not independent, so that documents are drawn, with replacement, as many
as there are, and come with all of their windows. Draws follow from the numbers alone. Several
models, or several lengths, that read the same documents are therefore resampled in pairs, and their
differences keep the common text.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nope.records import RESAMPLE, RESAMPLED, Measure

RESAMPLES = 200
LEAST = 16  # documents: resamples of fewer say little about others


def counts(documents: int) -> np.ndarray | None:
    """Bootstrap counts of documents, float32 [documents, RESAMPLES]: how often each is in each
    resample; columns add up to `documents`. None for fewer than LEAST."""
    if documents < LEAST:
        return None
    # Of all of numpy's generators the one whose numbers later versions may not change.
    generator = np.random.RandomState(documents)
    picked_RD = generator.randint(documents, size=(RESAMPLES, documents))
    counts_RD = [np.bincount(picked_D, minlength=documents) for picked_D in picked_RD]
    return np.stack(counts_RD, axis=1).astype(np.float32)


def of_windows(of_document: np.ndarray) -> np.ndarray | None:
    """Bootstrap counts of windows, float32 [windows, RESAMPLES]: how often each is in each resample
    of the documents. of_document: [windows], any number for each document. None for too few."""
    documents, index_W = np.unique(of_document, return_inverse=True)
    counts_DR = counts(len(documents))
    return None if counts_DR is None else counts_DR[index_W]


def means(sums_RT: np.ndarray | None, counts_WR: np.ndarray) -> np.ndarray | None:
    """Means [RESAMPLES, T] over the windows of every resample, of their sums; None of None."""
    return None if sums_RT is None else sums_RT / counts_WR.sum(axis=0, dtype=np.float64)[:, None]


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
