"""Input that does not fit is refused before anything is compiled, by name."""

from __future__ import annotations

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AlibiBias, Buckets, Mask, ScaleInvariantBias, api, attention
from tests.attention.devices import on_device


def shapes(B=2, T=8, S=8, N=4, K=2, H=16, dtype='float32'):
    q = jax.ShapeDtypeStruct((B, T, N, H), dtype)
    k = jax.ShapeDtypeStruct((B, S, K, H), dtype)
    return q, k, k


def named(implementation: str) -> dict:
    return {'implementation': implementation}


def masked(**rules) -> dict:
    return {'mask': Mask(**rules)}


def refused(message: str, q, k, v, **options) -> None:
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda q, k, v: attention(q, k, v, **options), q, k, v)


def mixed(**of_keys) -> tuple:
    """Shapes whose keys and values differ from what the queries would have."""
    return shapes()[0], *shapes(**of_keys)[1:]


IDS = np.zeros((2, 8), np.int32)
REFUSALS: list[tuple[str, tuple, dict]] = [
    ("'flash' is unknown; accepted: None, 'reference', 'chunked'", shapes(), named('flash')),
    ('N=3 query heads are not divisible by K=2', shapes(N=3), {}),
    ('q_BTNH has head dim 16, k_BSKH and v_BSKH have 8', mixed(H=8), {}),
    ('q_BTNH has batch size 2, k_BSKH and v_BSKH have 3', mixed(B=3), {}),
    ('v_BSKH has', (*shapes()[:2], shapes(S=9)[2]), {}),
    ('needs as many queries as keys, got T=8 and S=9', shapes(S=9), {}),
    (
        'q_BTNH has shape .* expected four axes',
        (jax.ShapeDtypeStruct((8, 4, 16), 'float32'), *shapes()[1:]),
        {},
    ),
    *(('expected no axis of length 0', shapes(**{axis: 0}), {}) for axis in 'BTH'),
    ('q_BTNH has dtype int32, accepted: float32, bfloat16, fl', shapes(dtype='int32'), {}),
    ('k_BSKH has dtype bfloat16, q_BTNH has float32', mixed(dtype='bfloat16'), {}),
    ('mask.kv_segments_BS is None', shapes(), masked(q_segments_BT=IDS)),
    ('mask.q_segments_BT is None', shapes(), masked(kv_segments_BS=IDS)),
    (
        r'mask.kv_segments_BS has shape \(2, 7\), expected \(2, 8\)',
        shapes(),
        masked(q_segments_BT=IDS, kv_segments_BS=IDS[:, 1:]),
    ),
    (
        'mask.q_segments_BT has dtype float32',
        shapes(),
        masked(q_segments_BT=IDS.astype('float32'), kv_segments_BS=IDS),
    ),
    *(  # positions are added to a window
        (f'mask.window is {window!r}; accepted', shapes(), masked(window=window))
        for window in (0, 2**30 + 1, 2.5, True, '3')
    ),
    *(
        (f'mask.offset is {offset}; accepted: -2', shapes(), masked(offset=offset))
        for offset in (2**30 + 1, -(2**30) - 1, 2**31, 2**70, np.int32(2**31 - 2))
    ),
    ('mask.offset has shape .* bool', shapes(), masked(offset=True)),
    ('mask.offset has shape', shapes(S=9), masked(offset=1.0)),
    ('mask.offset has shape', shapes(S=9), masked(offset=np.zeros(2, np.int32))),
    ('bias is for 3 heads, q_BTNH has 4', shapes(), {'bias': AlibiBias(jnp.ones(3))}),
    (r'bias.slopes_N has shape \(\), expected', shapes(), {'bias': AlibiBias(jnp.ones(()))}),
    (r'bias.table_PN has shape \(32,\)', shapes(), {'bias': Buckets(jnp.ones(32))}),
    ('bias.table_PN has 1 buckets', shapes(), {'bias': Buckets(jnp.ones((1, 4)))}),
    ('bias.max_distance is 16', shapes(), {'bias': Buckets(jnp.ones((32, 4)), 16)}),
    ('mask is ndarray; accepted: a Mask, as', shapes(), {'mask': np.ones((4, 4), bool)}),
    ('bias is ndarray; accepted: a nope.attention.bias.Bias', shapes(), {'bias': np.ones(4)}),
    *(
        (
            r'key_bias_BNS has shape \(.*\), expected \(2, 4, 8\): batch, query heads, keys',
            shapes(),
            {'key_bias_BNS': np.zeros(shape, np.float32)},
        )
        for shape in ((2, 2, 8), (2, 4, 7), (4, 8), (1, 4, 8))
    ),
    (
        'key_bias_BNS has dtype bfloat16, accepted: float32',
        shapes(),
        {'key_bias_BNS': jnp.zeros((2, 4, 8), jnp.bfloat16)},
    ),
    *(
        (f"implementation='{name}' cannot: {reason}", shapes(), named(name))
        for name, reason in (
            ('pallas_tpu', 'the device is a cpu, not a TPU'),
            ('pallas_gpu', 'it runs on GPUs, this is a cpu'),
            ('mosaic_gpu', 'the device is cpu and not a Hopper GPU'),
        )
    ),
]


@pytest.mark.usefixtures('untyped')
@pytest.mark.parametrize(('message', 'arrays', 'options'), REFUSALS)
def test_what_does_not_fit_is_refused(message: str, arrays: tuple, options: dict) -> None:
    refused(message, *arrays, **options)


def test_queries_that_continue_keys_have_an_offset() -> None:
    late = Mask(offset=1)
    out = jax.eval_shape(lambda *qkv: attention(*qkv, mask=late).out, *shapes(S=9))
    assert out.shape == (2, 8, 4, 16)


def test_segment_ids_of_more_than_32_bits() -> None:
    """The kernels have 32: ids that differ above them would be one."""
    ids = np.array([[0, 2**32]] * 2)
    message = 'mask.kv_segments_BS has dtype int64, expected an integer dtype of at most 32 bits'
    refused(message, *shapes(T=2, S=2), mask=Mask(True, ids.astype('int32'), ids))
    with jax.enable_x64(True):
        mask = Mask(True, jnp.asarray(ids), jnp.asarray(ids))
        refused('mask.q_segments_BT has dtype int64', *shapes(T=2, S=2), mask=mask)


def test_a_key_bias_is_refused_by_name_where_there_is_none() -> None:
    with on_device('NVIDIA H200', 'gpu'):
        refused(
            "implementation='library' cannot: .*key_bias_BNS",
            *shapes(H=64, dtype='bfloat16'),
            key_bias_BNS=jnp.zeros((2, 4, 8)),
            implementation='library',
        )


def test_factors_are_refused_by_name_where_there_are_none() -> None:
    bias = ScaleInvariantBias(jnp.ones(4))
    with on_device('NVIDIA H200', 'gpu'):
        for name in ('library', 'mosaic_gpu'):
            refused(
                f"implementation='{name}' cannot: .*bias",
                *shapes(H=64, dtype='bfloat16'),
                bias=bias,
                implementation=name,
            )


def chosen(caplog: pytest.LogCaptureFixture, *arguments, **options) -> list[str]:
    api._fastest.cache_clear()
    api._say_chosen.cache_clear()
    caplog.clear()
    with caplog.at_level(logging.INFO, logger='nope.attention.api'):
        for shape in arguments:
            jax.eval_shape(lambda *qkv: attention(*qkv, **options), *shape)
    return [record.getMessage() for record in caplog.records]


def test_the_choice_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    messages = chosen(caplog, shapes(), shapes(T=4, S=4))
    assert messages == ["attention: implementation 'chunked' on cpu"]
