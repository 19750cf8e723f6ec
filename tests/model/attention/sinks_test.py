"""Attention sinks and output gates: one more logit in the softmax, and a factor of the outputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Mask, attention
from nope.model.attention.by_head import Attended
from nope.model.attention.sinks import add_sinks
from nope.model.shape import AttentionShape
from tests import tiny
from tests.model.programs import T, influence, run
from tests.positions.cases import normal

B, S, N, H = 2, 12, 3, 4
SINKS_N = np.array([0.0, 2.5, -40.0], np.float32)


def with_column(sinks_N: np.ndarray, q, k, v, mask_TS: np.ndarray):
    """out, lse and entropy by a softmax over the logits and one column more, in float64."""
    logits_BNTS = np.einsum('BTNH,BSNH->BNTS', q, k, dtype=np.float64)
    logits_BNTS = np.where(mask_TS, logits_BNTS, -np.inf)
    column_BNT1 = np.broadcast_to(sinks_N[:, None, None], (B, N, S, 1))
    all_BNTS = np.concatenate([logits_BNTS, column_BNT1], axis=-1)
    lse_BNT = np.log(np.exp(all_BNTS).sum(axis=-1))
    weights_BNTS = np.exp(all_BNTS - lse_BNT[..., None])
    logs_BNTS = np.log(np.where(weights_BNTS > 0, weights_BNTS, 1.0))
    out_BTNH = np.einsum('BNTS,BSNH->BTNH', weights_BNTS[..., :-1], v)
    return out_BTNH, lse_BNT, -(weights_BNTS * logs_BNTS).sum(axis=-1)


def test_a_sink_is_a_column_of_the_softmax_without_a_value() -> None:
    """Also in rows that see no key."""
    q, k, v = (jnp.asarray(normal(seed, B, S, N, H)) for seed in range(3))
    ids_T = np.where(np.arange(S) < 3, 7, 1)
    ids_S = np.ones(S, np.int32)
    mask = Mask(True, *(jnp.asarray(np.stack([ids] * B)) for ids in (ids_T, ids_S)))
    output = attention(q, k, v, mask=mask, entropy=True, implementation='reference')
    found = add_sinks(Attended(output), jnp.asarray(SINKS_N)).output
    seen_TS = np.tril(np.ones((S, S), bool)) & (ids_T[:, None] == ids_S)
    for array, wanted in zip(found[:3], with_column(SINKS_N, q, k, v, seen_TS), strict=True):
        np.testing.assert_allclose(array, wanted, rtol=2e-5, atol=2e-6)
    assert np.all(np.asarray(found.out)[:, :3] == 0)


def test_the_gradient_of_a_sink_is_the_slope_and_finite_in_rows_without_keys() -> None:
    q, k, v = (jnp.asarray(normal(seed, B, S, N, H)) for seed in range(3))
    ids = jnp.asarray(np.arange(S)[None].repeat(B, 0))
    mask = Mask(True, ids, jnp.where(ids == 0, 99, ids))

    def total(sinks_N: jax.Array, q: jax.Array) -> jax.Array:
        output = attention(q, k, v, mask=mask, entropy=True, implementation='reference')
        found = add_sinks(Attended(output), sinks_N).output
        assert found.entropy is not None
        return jnp.sum(found.out * v) + jnp.sum(found.entropy)

    d_sinks_N, d_q = jax.grad(total, argnums=(0, 1))(jnp.asarray(SINKS_N), q)
    assert np.all(np.isfinite(d_sinks_N)) and np.all(np.isfinite(d_q))
    step = np.array([0.01, 0.0, 0.0], np.float32)
    slope = (total(SINKS_N + step, q) - total(SINKS_N - step, q)) / 0.02
    np.testing.assert_allclose(d_sinks_N[0], slope, rtol=1e-2)


def test_weights_on_keys_keep_the_share_that_the_sink_leaves() -> None:
    """A sink as heavy as all keys together takes half of every weight."""
    q, k, v = (jnp.asarray(normal(seed, 1, S, 1, H)) for seed in range(3))
    output = attention(q, k, v, entropy=True, implementation='reference')
    last_1 = output.lse[0, :, -1]
    ones_BNT = jnp.ones_like(output.lse)
    ones = AttentionShape(ones_BNT, ones_BNT, ones_BNT)
    shape = add_sinks(Attended(output, ones), last_1).shape
    assert shape is not None
    for part in shape:
        np.testing.assert_allclose(part[0, 0, -1], 0.5, rtol=1e-6)


OPTIONS = [{'sinks': True}, {'output_gate': 'head'}, {'output_gate': 'element'}]


@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_outputs_follow_earlier_tokens_and_no_later_one(options: dict) -> None:
    change_ST, _ = influence(tiny.model(layers=1, **options))
    np.testing.assert_array_equal(np.tril(change_ST, -1), 0)
    assert np.all(change_ST[np.triu_indices(T)] > 1e-5)


def test_a_sink_far_below_all_logits_and_an_open_gate_change_nothing() -> None:
    """Up to the factor 1/2 of a gate whose weights are 0."""
    tokens = tiny.tokens(2, T)
    config = tiny.model(layers=1)
    variables = tiny.variables(config)
    plain = run(config, variables, tokens)
    attended = variables['params']['layers']['attention']
    sunk = {**attended, 'sinks': jnp.full((1, config.heads), -1e4)}
    found = run(tiny.model(layers=1, sinks=True), changed(variables, sunk), tokens)
    tiny.assert_close(found.hidden, plain.hidden, rtol=1e-5, atol=1e-6)
    shape = 1, config.width, config.heads, 1
    gated = {**attended, 'output_gate': jnp.zeros(shape), 'output': 2 * attended['output']}
    found = run(tiny.model(layers=1, output_gate='head'), changed(variables, gated), tokens)
    tiny.assert_close(found.hidden, plain.hidden, rtol=1e-5, atol=1e-6)


def changed(variables: dict, attention: dict) -> dict:
    params = variables['params']
    return {
        **variables,
        'params': {**params, 'layers': {**params['layers'], 'attention': attention}},
    }
