"""Block sizes of the `pallas_tpu` kernels: chosen, or measured on a device."""

from __future__ import annotations

from typing import NamedTuple

from nope.attention import block_sizes

# Of a v5e's four matrix units each holds 128 of a part's queries.
PARTS = {'forward': 512, 'backward': 1024}


class Blocks(NamedTuple):
    """queries, keys: the largest numbers a block. part: the largest number of a block's queries
    whose logits a step computes at a time; a power of two times 128."""

    queries: int
    keys: int
    part: int


def given(
    kind_of_pass: str, chosen: tuple[tuple[str, Blocks], ...], itemsize: int, head_dim: int
) -> Blocks | None:
    """Those chosen for the pass ('forward', 'backward'), or measured on the device, or None."""
    found = dict(chosen).get(kind_of_pass)
    if found is not None:
        return found
    measured = block_sizes.measured('pallas_tpu', kind_of_pass, itemsize, head_dim)
    return None if measured is None else Blocks(*measured)


def part_of(rows: int, largest: int, lanes: int) -> int:
    """Rows of a part: those of a block, halved until there are at most `largest`, or until half
    of them would not fill whole `lanes`."""
    part = rows
    while part > largest and part % (2 * lanes) == 0:
        part //= 2
    return part
