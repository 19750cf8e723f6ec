"""Block sizes of the `mosaic_gpu` kernels."""

from __future__ import annotations

from typing import NamedTuple

CORE_KIB = 227  # of shared memory that a program can have


class HopperBlocks(NamedTuple):
    """step: keys of a step of a kernel (in the gradients of k and v: queries), 64 or 128. memory:
    KiB of a core's shared memory for buffers of q, k, v and dout, two pairs at least."""

    step: int
    memory: int


# By registers: a step's logits take 64 of a thread at 128 keys, as many as the sums of out at a
# head dim of 128. In the gradients logits and their gradients are there at the same time, and for k
# and v two sums and the numbers by query.
_USUAL = {
    'forward': HopperBlocks(128, 200),
    'd_q': HopperBlocks(128, 200),
    'd_kv': HopperBlocks(64, 200),
}


def blocks_of(kind_of_pass: str, chosen: tuple[tuple[str, HopperBlocks], ...]) -> HopperBlocks:
    """Those chosen for the pass ('forward', 'd_q', 'd_kv'), or the usual ones.

    ValueError for a step that the kernels do not have, and for more memory than a core has."""
    found = dict(chosen).get(kind_of_pass, _USUAL[kind_of_pass])
    if found.step not in (64, 128):
        raise ValueError(f'a step of {found.step} for {kind_of_pass}; accepted: 64, 128')
    if not 1 <= found.memory <= CORE_KIB:
        raise ValueError(
            f'{found.memory} KiB of shared memory for {kind_of_pass}; accepted: 1 to {CORE_KIB}'
        )
    return found
