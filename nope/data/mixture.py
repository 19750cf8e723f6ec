"""Random draw of the source of each training sequence, by the weights of a mixture."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from nope.runtime.caching import cached_method

CHUNK = 1 << 16
_CHUNKS_KEPT = 8


class SourceDraws:
    """The stream of `random.Random(seed).choices(range(n), weights)`, with random access.

    It is the paper's protocol, which `grain.MapDataset.mix` does not give: that interleaves sources
    in a fixed rhythm of whole-number proportions, without a draw.

    `draws[i]` is (source, rank): the source of global example i and how many earlier examples
    that source gave. The stream is drawn in chunks; what is kept of each is the generator's
    state and the counts at its start, so a far position costs time once (about 10 ns an
    example) and almost no memory. Safe to share between threads.
    """

    def __init__(self, seed: int, weights: Sequence[float]) -> None:
        # Python's generator, as numpy's: the same Mersenne Twister gives the same doubles.
        _, state, _ = random.Random(seed).getstate()
        first = ('MT19937', np.asarray(state[:-1], np.uint32), state[-1])
        self._generator = np.random.RandomState()
        self._states: list[Any] = [first]
        self._counts = [np.zeros(len(weights), np.int64)]
        # The sums that `choices` forms: left to right, in double precision.
        self._cumulative = np.add.accumulate(np.asarray(weights, np.float64))
        self._lock = threading.RLock()
        self._chunk = cached_method(self._draw_chunk, _CHUNKS_KEPT)

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, index: int) -> tuple[int, int]:
        chunk, offset = divmod(int(index), CHUNK)
        with self._lock:
            while len(self._states) <= chunk:
                self._draw_chunk(len(self._states) - 1)
            sources, ranks = self._chunk(chunk)
        return int(sources[offset]), int(ranks[offset])

    def _draw_chunk(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """Sources and ranks [CHUNK] of one chunk; notes where the next one starts."""
        self._generator.set_state(self._states[chunk])
        scaled = self._generator.random_sample(CHUNK) * self._cumulative[-1]
        sources = np.searchsorted(self._cumulative[:-1], scaled, side='right')
        ranks = np.empty(CHUNK, np.int64)
        counts = self._counts[chunk].copy()
        for source in range(len(counts)):
            drawn = np.flatnonzero(sources == source)
            ranks[drawn] = counts[source] + np.arange(len(drawn))
            counts[source] += len(drawn)
        if len(self._states) == chunk + 1:
            self._states.append(self._generator.get_state(legacy=True))
            self._counts.append(counts)
        return sources, ranks
