"""Random positions of training sequences (Ruoss et al., 2023, arXiv 2305.16843)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nope.data.batch import Batch

_STREAM = 2305_16843  # apart from the seeds of the sources' orders


def positions_of(seed: int, example: int, length: int, position_range: int) -> np.ndarray:
    """Positions of a training example, int32 [length]: a uniformly random subset of 0 to
    position_range - 1, without replacement, sorted. A function of its arguments alone."""
    draw = np.random.default_rng((seed, _STREAM, example))
    drawn = draw.choice(position_range, size=length, replace=False, shuffle=False)
    return np.sort(drawn).astype(np.int32)


def with_positions(
    stream: Iterator[Batch],
    seed: int,
    start: int,
    batch_size: int,
    rows: np.ndarray,
    position_range: int,
) -> Iterator[Batch]:
    """The batches `start`, `start + 1`, ... with drawn positions. rows: those of the global batch
    of `batch_size` examples that the stream has."""
    for number, batch in enumerate(stream, start):
        length = batch.tokens.shape[-1]
        drawn = [
            positions_of(seed, number * batch_size + int(row), length, position_range)
            for row in rows
        ]
        yield batch._replace(positions=np.stack(drawn))
