"""Block geometry: the blocks of keys (or of queries) that a block on the other side sees.

Pure functions of indices. NumPy in, NumPy out, which is how tables are made beforehand; on traced
values, also inside a kernel, they are a few operations on scalars.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class BlockRange(NamedTuple):
    """Blocks begin <= j < end are seen; of whole_begin <= j < whole_end, every pair.

    cut: whether there may be others before those and after those.
    """

    begin: Any
    whole_begin: Any
    whole_end: Any
    end: Any
    cut: tuple[bool, bool]

    def within(self, begin: Any, end: Any) -> BlockRange:
        """The part of it in begin <= j < end."""
        xp: Any = module_of(*self[:4], begin, end)
        return BlockRange(
            xp.clip(self.begin, begin, end),
            xp.clip(self.whole_begin, begin, end),
            xp.clip(self.whole_end, begin, end),
            xp.clip(self.end, begin, end),
            self.cut,
        )


def visible_blocks(
    first: Any, last: Any, behind: int | None, ahead: int | None, length: int, block: int
) -> BlockRange:
    """The blocks of `length` indices that positions first <= p <= last see.

    behind, ahead: p sees indices from p - behind to p + ahead; None: all on that side. By these
    two alone, so what a key is seen from are the blocks with both exchanged. Python integers where
    neither bounds what is seen.
    """
    xp: Any = module_of(first, last)

    def before(x: Any) -> Any:
        """Whole blocks before index x."""
        return _divide(xp.clip(x, 0, length), block)

    def up_to(x: Any) -> Any:
        """Blocks that begin before index x."""
        return _divide(xp.clip(x, 0, length) + (block - 1), block)

    begin, whole_begin = 0, 0
    whole_end, end = length // block, -(-length // block)
    if ahead is not None:
        whole_end, end = before(first + (ahead + 1)), up_to(last + (ahead + 1))
    if behind is not None:
        begin = xp.minimum(_divide(xp.maximum(first - behind, 0), block), end)
        whole_end = xp.maximum(whole_end, begin)
        whole_begin = xp.clip(up_to(last - behind), begin, whole_end)
    cut = behind is not None, ahead is not None or length % block > 0
    return BlockRange(begin, whole_begin, whole_end, end, cut)


def sweep(
    blocks: BlockRange, step: Callable[..., Any], state: Any, *, cut_all: bool = False
) -> Any:
    """`state = step(j, state, cut=...)` over the blocks, ascending. cut: whether a rule of position
    may hide pairs of block j; with `cut_all` it is on for all of them."""
    cut, whole = (functools.partial(step, cut=x) for x in (True, False))
    if cut_all:
        return lax.fori_loop(blocks.begin, blocks.end, cut, state)
    if blocks.cut[0]:
        state = lax.fori_loop(blocks.begin, blocks.whole_begin, cut, state)
    state = lax.fori_loop(blocks.whole_begin, blocks.whole_end, whole, state)
    if blocks.cut[1]:
        state = lax.fori_loop(blocks.whole_end, blocks.end, cut, state)
    return state


@dataclasses.dataclass(frozen=True)
class BlockPlan:
    """Static facts of one call: lengths before padding, and the blocks they are cut into.

    aligned: query t is at position t, and there are as many keys as queries; under a causal rule
        the blocks of both have the same size.
    """

    causal: bool
    window: int | None
    aligned: bool
    entropy: bool
    queries: int
    keys: int
    q_block: int
    k_block: int

    @property
    def q_blocks(self) -> int:
        return -(-self.queries // self.q_block)

    @property
    def k_blocks(self) -> int:
        return -(-self.keys // self.k_block)

    @property
    def padded_queries(self) -> int:
        return self.q_blocks * self.q_block

    @property
    def padded_keys(self) -> int:
        return self.k_blocks * self.k_block

    @property
    def one_cut_block(self) -> bool:
        """Whether all blocks but the last that a query block sees are whole."""
        return self.window is None and (not self.causal or self.aligned)

    @property
    def padding_is_hidden(self) -> bool:
        """Whether the rule alone hides the keys beyond the end from every real query: where
        query t is at t they lie after it."""
        return self.causal and self.aligned

    @property
    def most_pairs(self) -> int:
        """Pairs of blocks in sight at most, whatever the offset."""
        if self.window is None and self.causal and self.aligned:
            return self.q_blocks * (self.k_blocks + 1) // 2
        most = self.k_blocks
        if self.window is not None:
            reach = self.window * (1 if self.causal else 2)
            most = min(most, (reach + self.q_block) // self.k_block + 2)
        return self.q_blocks * most

    def visible_keys(self, i: Any, offset: Any) -> BlockRange:
        """The key blocks that query block i sees, at least one. A kernel may begin with the last,
        which is never a whole one. offset: position of query 0."""
        if self.one_cut_block:
            last = i if self.causal else self.k_blocks - 1
            return BlockRange(0, 0, last, last + 1, (False, False))
        begin = offset + i * self.q_block
        behind = None if self.window is None else self.window - 1
        seen = visible_blocks(
            begin,
            begin + (self.q_block - 1),
            behind,
            0 if self.causal else behind,
            self.keys,
            self.k_block,
        )
        xp: Any = module_of(seen.end)
        last = xp.maximum(seen.end - 1, 0)
        return seen.within(0, last)._replace(end=last + 1)


def module_of(*values: Any) -> ModuleType:
    """The module that computes on these: jax.numpy where one is traced or on a device."""
    return jnp if any(isinstance(value, jax.Array) for value in values) else np


def _divide(x: Any, divisor: int) -> Any:
    """x / divisor for x >= 0, rounded down. `//` on traced values would also see to negative x,
    with operations that not every kernel language has."""
    return lax.div(x, x.dtype.type(divisor)) if isinstance(x, jax.Array) else x // divisor
