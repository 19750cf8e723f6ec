"""Input that does not fit is refused before anything is compiled, by name."""

from __future__ import annotations

import logging

import jax
import jax.numpy as jnp
import pytest

from nope.attention import Mask, api, attention


def shapes(B=2, T=8, S=8, N=4, K=2, H=16, dtype='float32'):
    q = jax.ShapeDtypeStruct((B, T, N, H), dtype)
    k = jax.ShapeDtypeStruct((B, S, K, H), dtype)
    return q, k, k


def refused(message: str, q, k, v, **options) -> None:
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda q, k, v: attention(q, k, v, **options), q, k, v)


def test_unknown_implementation() -> None:
    refused(
        "'flash' is unknown; accepted: None, 'reference', 'chunked'",
        *shapes(),
        implementation='flash',
    )


def test_heads_not_divisible() -> None:
    refused('N=3 query heads are not divisible by K=2', *shapes(N=3))


def test_head_dims_differ() -> None:
    q, _, _ = shapes(H=16)
    _, k, v = shapes(H=8)
    refused('q_BTNH has head dim 16, k_BSKH and v_BSKH have 8', q, k, v)


def test_batch_sizes_differ() -> None:
    q, _, _ = shapes(B=2)
    _, k, v = shapes(B=3)
    refused('q_BTNH has batch size 2, k_BSKH and v_BSKH have 3', q, k, v)


def test_keys_and_values_differ() -> None:
    q, k, _ = shapes()
    _, _, v = shapes(S=9)
    refused('v_BSKH has', q, k, v)


def test_causal_needs_as_many_keys_as_queries() -> None:
    refused('mask.causal=True needs as many queries as keys, got T=8 and S=9', *shapes(S=9))


def test_missing_axis() -> None:
    _, k, v = shapes()
    refused(
        'q_BTNH has shape .* expected four axes', jax.ShapeDtypeStruct((8, 4, 16), 'float32'), k, v
    )


@pytest.mark.parametrize('axis', ['B', 'T', 'H'])
def test_axis_of_length_zero(axis: str) -> None:
    refused('expected no axis of length 0', *shapes(**{axis: 0}))


def test_dtypes() -> None:
    refused('q_BTNH has dtype int32, accepted: float32, bfloat16, float16', *shapes(dtype='int32'))
    q, _, _ = shapes()
    _, k, v = shapes(dtype='bfloat16')
    refused('k_BSKH has dtype bfloat16, q_BTNH has float32', q, k, v)


def test_segments() -> None:
    ids = jnp.zeros((2, 8), jnp.int32)
    refused('mask.kv_segments_BS is None', *shapes(), mask=Mask(True, ids, None))
    refused('mask.q_segments_BT is None', *shapes(), mask=Mask(True, None, ids))
    refused(
        r'mask.kv_segments_BS has shape \(2, 7\), expected \(2, 8\)',
        *shapes(),
        mask=Mask(True, ids, ids[:, 1:]),
    )
    refused(
        'mask.q_segments_BT has dtype float32',
        *shapes(),
        mask=Mask(True, ids.astype(jnp.float32), ids),
    )


def test_the_choice_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    api._choose.cache_clear()
    with caplog.at_level(logging.INFO, logger='nope.attention.api'):
        jax.eval_shape(attention, *shapes())
        jax.eval_shape(attention, *shapes(T=4, S=4))
    assert [record.getMessage() for record in caplog.records] == [
        "attention: implementation 'chunked' on cpu (linear memory on every backend)"
    ]
