"""Schedule of the visited pairs of blocks, as tables that the TPU kernels read while they run.

A step works on one query block and one key block. Pairs out of sight are no steps, so a causal call
has half of them and a window a band. The steps of one query block follow each other; for the
gradients of keys and values, those of one key block. So a block of output is written once, after
its last step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nope.attention.blocks import BlockPlan, module_of

FIRST, LAST, CUT, IDLE = 1, 2, 4, 8


class Schedule(NamedTuple):
    """int32 [P], P steps: block of queries, block of keys, and flags. NumPy where the offset is
    known, and then no longer than it need be.

    FIRST, LAST: of the steps of one output block. CUT: a rule of position hides some pairs.
    IDLE: nothing to compute.
    """

    q_P: Any
    k_P: Any
    flags_P: Any


def by_query(plan: BlockPlan, offset: Any) -> Schedule:
    """The steps of query block 0, then those of 1, ...; keys ascend. Every query block has one.

    offset: position of query 0 among the keys, an integer or a traced int32 scalar."""
    xp = module_of(offset)
    first_C, last_C, whole = _visible_keys(plan, offset)
    q_P, k_P, flags_P = _enumerate(xp, first_C, last_C, plan.most_pairs)
    return Schedule(q_P, k_P, flags_P | _flag(xp, CUT, _cut(whole, q_P, k_P)))


def by_key(plan: BlockPlan, offset: Any) -> Schedule:
    """The steps of key block 0, then those of 1, ...; queries ascend. A key block that no query
    sees has one idle step, in which its zeros are written."""
    xp = module_of(offset)
    first_C, last_C, whole = _visible_keys(plan, offset)
    at_D = xp.arange(plan.k_blocks, dtype=xp.int32)
    # What is seen never moves back from one query block to the next.
    begin_D = xp.searchsorted(last_C, at_D, side='left').astype(xp.int32)
    end_D = xp.searchsorted(first_C, at_D, side='right').astype(xp.int32) - 1
    unseen_D = begin_D > end_D
    begin_D = xp.minimum(begin_D, plan.q_blocks - 1)
    end_D = xp.maximum(end_D, begin_D)
    # Where a key block is unseen, no query block has all of them for pairs.
    bound = min(plan.most_pairs + plan.k_blocks, plan.q_blocks * plan.k_blocks)
    k_P, q_P, flags_P = _enumerate(xp, begin_D, end_D, bound)
    flags_P |= _flag(xp, CUT, _cut(whole, q_P, k_P)) | _flag(xp, IDLE, unseen_D[k_P])
    return Schedule(q_P, k_P, flags_P)


def _visible_keys(plan: BlockPlan, offset: Any) -> tuple[Any, Any, tuple[Any, Any]]:
    """int32 [C]: first and last key block of every query block, and the range of whole ones."""
    xp = module_of(offset)
    at_C = xp.arange(plan.q_blocks, dtype=xp.int32)
    seen = plan.visible_keys(at_C, offset)
    first_C, last_C, begin_C, end_C = (
        xp.broadcast_to(xp.asarray(x, xp.int32), at_C.shape)
        for x in (seen.begin, seen.end - 1, seen.whole_begin, seen.whole_end)
    )
    return first_C, last_C, (begin_C, end_C)


def _cut(whole: tuple[Any, Any], q_P: Any, k_P: Any) -> Any:
    return (k_P < whole[0][q_P]) | (k_P >= whole[1][q_P])


def _enumerate(xp: Any, first_D: Any, last_D: Any, bound: int) -> tuple[Any, Any, Any]:
    """(d, e, flags) for every d and first[d] <= e <= last[d]. A traced program has `bound` of them,
    filled with idle repetitions of the last."""
    ends_D = xp.cumsum(last_D - first_D + 1, dtype=xp.int32)
    size = int(ends_D[-1]) if isinstance(ends_D, np.ndarray) else bound
    at_P = xp.arange(size, dtype=xp.int32)
    within_P = xp.minimum(at_P, ends_D[-1] - 1)
    d_P = xp.searchsorted(ends_D, within_P, side='right').astype(xp.int32)
    e_P = last_D[d_P] - (ends_D[d_P] - 1 - within_P)
    flags_P = _flag(xp, FIRST, e_P == first_D[d_P]) | _flag(xp, LAST, e_P == last_D[d_P])
    return d_P, e_P, xp.where(at_P == within_P, flags_P, xp.int32(IDLE))


def _flag(xp: Any, flag: int, where_P: Any) -> Any:
    return xp.where(where_P, xp.int32(flag), xp.int32(0))
