"""Which blocks of keys a block of queries sees."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_FAR = 2**30  # further than any key, and positions can be added to it


class Span(NamedTuple):
    """Key blocks first, first + 1, ..., last that one query block sees; `last` is the block to
    begin with. Of whole[0] <= j < whole[1] it sees every key; the others are cut by a rule."""

    first: Any
    whole: tuple[Any, Any]
    last: Any


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is static about one call: lengths before padding, and the blocks they are cut into.

    aligned: query t is at position t, and there are as many keys as queries.
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

    def span(self, i: Any, offset: Any) -> Span:
        """What query block i sees. offset: position of query 0. NumPy in, NumPy out."""
        if self.one_cut_block:
            last = i if self.causal else self.k_blocks - 1
            return Span(0, (0, last), last)
        xp: Any = module_of(i, offset)
        begin = offset + i * self.q_block  # positions begin <= p < end of the queries
        end = begin + self.q_block
        # A query at p sees keys up to p + ahead, and as far back as p - behind.
        ahead = 0 if self.causal or self.window is None else self.window - 1
        behind = _FAR if self.window is None else self.window - 1
        last = xp.clip((end - 1 + ahead) // self.k_block, 0, self.k_blocks - 1)
        first = xp.clip((begin - behind) // self.k_block, 0, last)
        whole_end = xp.minimum(begin + ahead + 1, self.keys) // self.k_block
        whole_begin = -((behind + 1 - end) // self.k_block)  # rounded up
        whole_end = xp.clip(whole_end, first, last)
        return Span(first, (xp.clip(whole_begin, first, whole_end), whole_end), last)


def module_of(*values: Any) -> ModuleType:
    """The module that computes on these: jax.numpy where one is traced or on a device."""
    return jnp if any(isinstance(value, jax.Array) for value in values) else np
