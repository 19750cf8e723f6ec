from __future__ import annotations

import jax.numpy as jnp

from nope.positions import NoPE
from tests.positions import cases


def test_queries_and_keys_stay_as_they_are() -> None:
    q_BTNH = jnp.asarray(cases.normal(0, 2, 5, 4, 8))
    k_BTKH = jnp.asarray(cases.normal(1, 2, 5, 2, 8))
    q_out, k_out = NoPE().encode(q_BTNH, k_BTKH, jnp.arange(5)[None], 5)
    assert q_out is q_BTNH
    assert k_out is k_BTKH


def test_nothing_else_is_added() -> None:
    x_BTD = jnp.asarray(cases.normal(0, 2, 5, 32))
    assert NoPE().embed(x_BTD, jnp.arange(5)[None], None) is x_BTD
    assert NoPE().table(32, 4) is None
    assert NoPE().bias(4, None) is None
    assert NoPE().longest is None and not NoPE().embeds
