"""Block sizes of the `pallas_tpu` kernels: parts of blocks, and sums that stay in memory."""

from __future__ import annotations

import re
from typing import NamedTuple

from nope.runtime.platform import target_device

# Of a v5e's four matrix units each holds 128 of a part's queries.
PARTS = {'forward': 512, 'backward': 1024}
KEPT_BYTES = 24 * 2**20  # at most, of sums that a kernel keeps between the blocks of queries
_LITTLE_MEMORY = re.compile(r'v[234]\b')  # TPUs with 16 MiB of vector memory


class TpuBlocks(NamedTuple):
    """queries, keys: the largest numbers a block. part: the largest number of a block's queries
    whose logits a step computes at a time; a power of two times 128."""

    queries: int
    keys: int
    part: int


def fit(length: int, unit: int, largest: int) -> int:
    """The smallest power of two times `unit` that holds `length`, at most `largest`."""
    size = unit
    while size < length and size < largest:
        size *= 2
    return size


def part_of(rows: int, largest: int, lanes: int) -> int:
    """Rows of a part: those of a block, halved until there are at most `largest`, or until half
    of them would not fill whole `lanes`."""
    part = rows
    while part > largest and part % (2 * lanes) == 0:
        part //= 2
    return part


def kept_fit(keys: int, head_dim: int, itemsize: int) -> bool:
    """Whether the sums of two gradients of a head's keys, and what they are rounded to, fit the
    vector memory of the device."""
    lanes = -(-head_dim // 128) * 128
    return (
        2 * keys * lanes * (4 + itemsize) <= KEPT_BYTES
        and _LITTLE_MEMORY.search(target_device()[1]) is None
    )
