"""Rows of chosen queries are those of the dense weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AlibiBias, Bias, Buckets, Mask, ScaleInvariantBias, attention
from nope.attention.dense import dense_attention
from nope.attention.rows import attention_rows

B, T, N, K = 2, 16, 4, 2
AT = [11, 0, 15, 4]
RNG = np.random.default_rng(0)
SEGMENTS = jnp.asarray(np.sort(RNG.integers(3, size=(B, T)), axis=1), jnp.int32)
MASKS = {
    'causal': Mask(),
    'all': Mask(causal=False),
    'window': Mask(window=3),
    'segments': Mask(q_segments_BT=SEGMENTS, kv_segments_BS=SEGMENTS),
}
BIASES: dict[str, Bias | None] = {
    'none': None,
    'ALiBi': AlibiBias(jnp.asarray([0.5, 0.1, 0.0, 0.3])),
    'T5': Buckets(jnp.asarray(RNG.normal(size=(8, N)), jnp.float32), max_distance=12),
    'factors': ScaleInvariantBias(jnp.asarray([1.0, 0.0, 1.0, 0.5]), tau=2.0),
}


def operands() -> tuple[Any, Any, Any, Any]:
    """Queries, keys, values whose weighted sum is the weights, and a bias by key."""
    rng = np.random.default_rng(1)
    q, k = (jnp.asarray(rng.normal(size=(B, T, n, T)), jnp.float32) for n in (N, K))
    eye = jnp.broadcast_to(jnp.eye(T)[None, :, None], (B, T, K, T))
    return q, k, eye, jnp.asarray(rng.normal(size=(B, N, T)), jnp.float32)


@pytest.mark.parametrize('mask', MASKS.values(), ids=MASKS)
@pytest.mark.parametrize('bias', BIASES.values(), ids=BIASES)
def test_softmax_rows_are_those_of_the_definition(mask: Mask, bias: Bias | None) -> None:
    """In the order of the queries that are asked for; with a bias by key where there is one by
    distance."""
    q, k, eye, key_bias = operands()
    how: dict[str, Any] = {'mask': mask, 'bias': bias}
    how['key_bias_BNS'] = None if bias is None else key_bias
    whole_BTNS = attention(q, k, eye, implementation='reference', **how).out
    at = np.array(AT)
    found = attention_rows(q[:, at], k, jnp.asarray(at), **how)
    assert found.shape == (B, N, len(AT), T) and found.dtype == jnp.float32
    expected = np.asarray(whole_BTNS)[:, at].transpose(0, 2, 1, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(np.sum(found, axis=-1), 1.0, rtol=1e-5)


@pytest.mark.parametrize('weights', ['entmax', 'stick_breaking'])
def test_other_weights_are_those_of_their_definition(weights: str) -> None:
    q, k, eye, _ = operands()
    whole_BTNS = dense_attention(q, k, eye, weights=weights).out
    at = np.array(AT)
    found = attention_rows(q[:, at], k, jnp.asarray(at), weights=weights)
    expected = np.asarray(whole_BTNS)[:, at].transpose(0, 2, 1, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_half_precision_is_computed_in_float32() -> None:
    q, k, _, _ = operands()
    q, k = q[:, :1].astype(jnp.bfloat16), k.astype(jnp.bfloat16)
    at = jnp.asarray([T - 1])
    found = attention_rows(q, k, at)
    exact = attention_rows(q.astype(jnp.float32), k.astype(jnp.float32), at)
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize('name', ['ALiBi', 'factors'])
def test_float64_parameters_of_a_bias_are_used_in_float32(name: str) -> None:
    q, k, _, _ = operands()
    at, bias = jnp.asarray([T - 1]), BIASES[name]
    expected = attention_rows(q[:, :1], k, at, bias=bias)
    with jax.enable_x64(True):
        double = jax.tree.map(lambda x: jnp.asarray(x, 'float64'), bias)
        found = attention_rows(q[:, :1], k, at, bias=double)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_a_row_that_sees_no_key_is_0() -> None:
    q, k, _, _ = operands()
    apart = Mask(q_segments_BT=SEGMENTS, kv_segments_BS=SEGMENTS + 9)
    assert not np.any(attention_rows(q[:, :2], k, jnp.asarray([3, 5]), mask=apart))


def test_what_does_not_fit_is_refused() -> None:
    q, k, _, _ = operands()
    with pytest.raises(ValueError, match=r'mask\.offset is given; at_R says where'):
        attention_rows(q, k, jnp.arange(T), mask=Mask(offset=3))
    with pytest.raises(
        ValueError, match=r"weights='max' is unknown; accepted: 'softmax', 'entmax'"
    ):
        attention_rows(q, k, jnp.arange(T), weights='max')
    with pytest.raises(ValueError, match=r"'stick_breaking' needs mask\.causal=True"):
        attention_rows(q, k, jnp.arange(T), mask=Mask(causal=False), weights='stick_breaking')
    with pytest.raises(ValueError, match=r'at_R has shape \(3,\) .*, expected integers .*\(16,\)'):
        attention_rows(q, k, jnp.arange(3))


@pytest.mark.parametrize(
    ('how', 'message'),
    [
        ({'mask': Mask(kv_segments_BS=SEGMENTS)}, r'mask\.q_segments_BT is None'),
        ({'mask': Mask(q_segments_BT=SEGMENTS)}, r'mask\.kv_segments_BS is None'),
        ({'bias': AlibiBias(jnp.ones(1))}, 'bias is for 1 heads, q_BTNH has 4'),
        (
            {'key_bias_BNS': jnp.ones((B, 1, T))},
            r'key_bias_BNS has shape .*, expected \(2, 4, 16\)',
        ),
    ],
    ids=['keys alone', 'queries alone', 'bias', 'key bias'],
)
def test_arguments_are_checked_as_those_of_attention(how: dict[str, Any], message: str) -> None:
    q, k, _, _ = operands()
    with pytest.raises(ValueError, match=message):
        attention_rows(q[:, :2], k, jnp.asarray([3, 5]), **how)


@pytest.mark.parametrize('dtype', [np.int8, np.uint8, np.int64])
def test_places_of_queries_may_be_of_any_integer_type(dtype: Any) -> None:
    """Keys beyond the type's range are masked as all others."""
    rng = np.random.default_rng(2)
    q, k = (jnp.asarray(rng.normal(size=(1, n, 1, 8)), jnp.float32) for n in (2, 300))
    at = np.array([3, 100], dtype)
    found = attention_rows(q, k, at, bias=AlibiBias(jnp.asarray([0.1])))
    expected = attention_rows(q, k, jnp.asarray([3, 100]), bias=AlibiBias(jnp.asarray([0.1])))
    np.testing.assert_array_equal(found, expected)
    assert np.count_nonzero(np.asarray(found), axis=-1).tolist() == [[[4, 101]]]
