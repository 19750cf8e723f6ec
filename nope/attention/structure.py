"""Structured masks, and the output of attention.

Nothing here holds a dense [T, S] array: a mask is a rule plus O(T) arrays, from which a
chunked loop or a kernel computes the few entries it works on. Biases are in `bias/`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32


class AttentionOutput(NamedTuple):
    """Outputs of an attention call.

    out:     [B, T, N, H], the dtype of q: softmax(q k^T) v; 0 in rows that see no key.
    lse:     [B, N, T] float32: log sum_j exp(q_i . k_j); -inf in rows that see no key.
    entropy: [B, N, T] float32, nats: -sum_j a_ij ln a_ij; 0 in rows that see no key. None
        where it was not asked for.
    max_logit: [B, N, T] float32: the largest logit of each row; -inf in rows that see no key. A
        constant: no gradient passes it. None where it was not asked for.
    """

    out: Float[Array, 'B T N H']
    lse: Float32[Array, 'B N T']
    entropy: Float32[Array, 'B N T'] | None
    max_logit: Float32[Array, 'B N T'] | None = None


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=('q_segments_BT', 'kv_segments_BS', 'offset'),
    meta_fields=('causal', 'window'),
)
@dataclasses.dataclass(frozen=True)
class Mask:
    """Attention mask: a query sees the keys that pass every rule below.

    causal: a query at position i sees keys j <= i.
    q_segments_BT, kv_segments_BS: integer ids of at most 32 bits, given together; a query sees
        the keys whose id equals its own. No id is special: padding is a segment like any other
        (give it an id that no document has). A query whose id no visible key carries sees nothing.
    window: a query sees keys nearer than this, |i - j| < window (itself and window - 1 more on
        a side); None for all.
    offset: position of the first query among the keys, an integer or an int32 scalar: query t
        is at offset + t. For queries that continue cached keys. None: 0, and under `causal`
        as many queries as keys. From -2**30 to 2**30, so that positions are int32.

    A pytree: `causal` and `window` are static, ids and offset are arrays (and may be traced).
    """

    causal: bool = True
    q_segments_BT: jax.Array | None = None
    kv_segments_BS: jax.Array | None = None
    window: int | None = None
    offset: int | jax.Array | None = None

    @property
    def segmented(self) -> bool:
        """True for a mask with segment ids."""
        return self.q_segments_BT is not None

    def check(self, batch: int, queries: int, keys: int) -> None:
        """Raises ValueError where the mask does not fit [B, T] queries and [B, S] keys."""
        if self.causal and self.offset is None and queries != keys:
            raise ValueError(
                f'mask.causal=True without mask.offset needs as many queries as keys, got '
                f'T={queries} and S={keys}'
            )
        if self.window is not None and not (_is_int(self.window) and 1 <= self.window <= 2**30):
            raise ValueError(
                f'mask.window is {self.window!r}; accepted: integers from 1 to 2**30, or None for '
                'all'
            )
        if self.offset is not None:
            if not _is_int(self.offset):
                shape, kind = jnp.shape(self.offset), jnp.result_type(self.offset)
                if shape or not jnp.issubdtype(kind, jnp.integer):
                    raise ValueError(
                        f'mask.offset has shape {shape} and dtype {kind}, expected an integer '
                        'scalar'
                    )
            # Of a traced one the range is not known.
            if not isinstance(self.offset, jax.Array) and abs(int(self.offset)) > 2**30:
                raise ValueError(f'mask.offset is {self.offset}; accepted: -2**30 to 2**30')
        if (self.q_segments_BT is None) != (self.kv_segments_BS is None):
            missing = 'q_segments_BT' if self.q_segments_BT is None else 'kv_segments_BS'
            raise ValueError(f'mask.{missing} is None: give both segment arrays or neither')
        for name, ids, want in (
            ('q_segments_BT', self.q_segments_BT, (batch, queries)),
            ('kv_segments_BS', self.kv_segments_BS, (batch, keys)),
        ):
            if ids is None:
                continue
            if jnp.shape(ids) != want:
                raise ValueError(f'mask.{name} has shape {jnp.shape(ids)}, expected {want}')
            dtype = np.dtype(ids.dtype)
            if not jnp.issubdtype(dtype, jnp.integer) or dtype.itemsize > 4:
                raise ValueError(
                    f'mask.{name} has dtype {dtype}, expected an integer dtype of at most 32 bits'
                )

    def visible(
        self,
        q_index_T: jax.Array,
        k_index_S: jax.Array,
        q_segments_BT: jax.Array | None = None,
        kv_segments_BS: jax.Array | None = None,
    ) -> jax.Array | None:
        """The rule on one block, from the block's own indices and segment ids.

        Args:
          q_index_T, k_index_S: positions in the whole sequence, [T'] and [S']; those of queries
            with the offset already added.
          q_segments_BT, kv_segments_BS: the ids at those positions, [B, T'] and [B, S'].

        Returns:
          bool, [1, T', S'] or [B, T', S']; None where the rule hides nothing.
        """
        seen = in_sight(
            q_index_T[None, :, None],
            k_index_S[None, None, :],
            causal=self.causal,
            window=self.window,
        )
        if q_segments_BT is not None and kv_segments_BS is not None:
            same = q_segments_BT[:, :, None] == kv_segments_BS[:, None, :]
            seen = same if seen is None else seen & same
        return seen

    def as_array(self, batch: int, queries: int, keys: int) -> jax.Array:
        """The dense mask, bool [B, T, S]. O(T S) memory: for the reference and for tests."""
        first = 0 if self.offset is None else self.offset
        seen = self.visible(
            first + jnp.arange(queries), jnp.arange(keys), self.q_segments_BT, self.kv_segments_BS
        )
        return jnp.broadcast_to(True if seen is None else seen, (batch, queries, keys))


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def in_sight(
    q_at: jax.Array, k_at: jax.Array, *, causal: bool, window: int | None
) -> jax.Array | None:
    """The rules of position on queries and keys at these positions, which broadcast against each
    other; see `Mask`. None where the rules hide nothing."""
    seen = q_at >= k_at if causal else None
    if window is not None:
        near = q_at < k_at + window
        if not causal:
            near &= q_at + window > k_at
        seen = near if seen is None else seen & near
    return seen
