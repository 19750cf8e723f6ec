"""Random positions of training sequences (Ruoss et al., 2023, arXiv 2305.16843)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    lengths: Sequence[int],
) -> Iterator[Batch]:
    """The batches `start`, `start + 1`, ... with drawn positions. rows: those of the global batch
    of `batch_size` examples that the stream has. lengths: in turn, batch k is cut to
    lengths[k % len(lengths)] tokens and has positions drawn for so many: of those drawn for more
    the first ones would be the lowest."""
    for number, batch in enumerate(stream, start):
        length = lengths[number % len(lengths)]
        drawn = [
            positions_of(seed, number * batch_size + int(row), length, position_range)
            for row in rows
        ]
        yield batch.first(length)._replace(positions=np.stack(drawn))
