from __future__ import annotations

import jax
import jax.numpy as jnp

from nope.positions import NoPE


def test_queries_and_keys_stay_as_they_are() -> None:
    q_BTNH = jax.random.normal(jax.random.key(0), (2, 5, 4, 8))
    k_BTKH = jax.random.normal(jax.random.key(1), (2, 5, 2, 8))
    q_out, k_out = NoPE().encode(q_BTNH, k_BTKH, jnp.arange(5)[None], 5)
    assert q_out is q_BTNH
    assert k_out is k_BTKH
