"""Attention heads of two kinds in one layer: local ones, and ones without position encoding."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from nope.attention import Bias
from nope.positions.base import Gate, Position, Table
from nope.positions.none import NoPE
from nope.runtime.errors import FieldError, inside


@dataclasses.dataclass(frozen=True)
class Split(Position):
    """The first `share` of the query heads have the encoding `local`; the others have none.

    Local heads carry the order of nearby tokens, so that the others need none. Layers split
    between RoPE windows and NoPE are RNoPE-SWA (arXiv 2501.18795), heads split between ALiBi and
    NoPE a part of ASEntmax (arXiv 2506.16640).

    share: of the heads, between 0 and 1; a whole number of heads, and of key-value heads where the
        local heads' keys are encoded or seen through a window.
    window: keys that a local head sees, its own included; None for all before it. With `local`
        none, the window is all that makes a head local.
    """

    local: Position
    share: float = 0.5
    window: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise FieldError('share', self.share, 'accepted: above 0, below 1')
        if self.window is not None and not 1 <= self.window <= 2**30:
            raise FieldError('window', self.window, 'accepted: 1 to 2**30, or None for all keys')
        if self.local.embeds or isinstance(self.local, Split):
            raise FieldError(
                'local',
                self.local.describe(),
                'it must be an encoding of queries, keys or logits, in which heads can differ',
            )
        if isinstance(self.local, NoPE) and self.window is None:
            raise FieldError(
                'local', self.local.describe(), 'such heads are local through a window alone'
            )

    @property
    def longest(self) -> int | None:
        return self.local.longest

    @property
    def takes_positions(self) -> bool:
        return self.local.takes_positions

    @property
    def follows_length(self) -> bool:
        return self.local.follows_length

    @property
    def local_window(self) -> int | None:
        return self.window

    def local_heads(self, heads: int) -> int:
        """Number of local query heads of so many."""
        return round(self.share * heads)

    def check(self, head_dim: int) -> None:
        with inside('local', 'head_dim'):
            self.local.check(head_dim)

    def check_heads(self, heads: int, kv_heads: int) -> None:
        local, group = self.local_heads(heads), heads // kv_heads
        if not math.isclose(local, self.share * heads, rel_tol=1e-6) or not 0 < local < heads:
            rule = f'it must leave whole heads of both kinds among heads, {heads}'
            raise FieldError('share', self.share, rule)
        if self._by_key and local % group:
            raise FieldError(
                'share',
                self.share,
                f'{local} of {heads} query heads, of which {group} share a key-value head; it must '
                'be a multiple of that many',
            )

    @property
    def _by_key(self) -> bool:
        """Whether local heads need keys of their own, or a mask of their own."""
        return self.window is not None or type(self.local).encode is not Position.encode

    def table(self, width: int, heads: int) -> Table | None:
        return self.local.table(width, self.local_heads(heads))

    def gate(self, heads: int) -> Gate | None:
        return self.local.gate(self.local_heads(heads))

    def encode(
        self, q_BTNH: jax.Array, k_BTKH: jax.Array, positions_BT: jax.Array, length: int | jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Local heads encoded, selected by a mask: slices would cut heads that are sharded."""
        if type(self.local).encode is Position.encode:
            return q_BTNH, k_BTKH
        encoded = self.local.encode(q_BTNH, k_BTKH, positions_BT, length)
        return tuple(
            jnp.where(np.arange(x.shape[2])[:, None] < self.local_heads(x.shape[2]), local, x)
            for x, local in zip((q_BTNH, k_BTKH), encoded, strict=True)
        )  # type: ignore[return-value]

    def bias(self, heads: int, table: jax.Array | None) -> Bias | None:
        """The local heads' bias, with parameters of 0 for the others."""
        local = self.local_heads(heads)
        bias = self.local.bias(local, table)

        def padded(parameters: jax.Array) -> jax.Array:
            """Heads are the last axis of whatever a bias holds."""
            return jnp.pad(parameters, [(0, 0)] * (parameters.ndim - 1) + [(0, heads - local)])

        return jax.tree.map(padded, bias)

    def describe(self) -> str:
        kind, *rest = self.local.describe().split(', ')
        kind = 'local' if isinstance(self.local, NoPE) else kind
        seen = [] if self.window is None else [f'window {self.window}']
        return ', '.join([f'split {kind}', f'{self.share:g} of heads', *rest, *seen])
