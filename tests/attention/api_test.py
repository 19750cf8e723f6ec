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
    refused('needs as many queries as keys, got T=8 and S=9', *shapes(S=9))
    late = Mask(offset=1)
    out = jax.eval_shape(lambda *qkv: attention(*qkv, mask=late).out, *shapes(S=9))
    assert out.shape == (2, 8, 4, 16)


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


def test_segment_ids_of_more_than_32_bits() -> None:
    """The kernels have 32: ids that differ above them would be one."""
    ids = np.array([[0, 2**32]] * 2)
    message = 'mask.kv_segments_BS has dtype int64, expected an integer dtype of at most 32 bits'
    refused(message, *shapes(T=2, S=2), mask=Mask(True, ids.astype('int32'), ids))
    with jax.enable_x64(True):
        mask = Mask(True, jnp.asarray(ids), jnp.asarray(ids))
        refused('mask.q_segments_BT has dtype int64', *shapes(T=2, S=2), mask=mask)


def test_windows_and_offsets() -> None:
    for window in (0, 2**30 + 1, 2.5, True, '3'):  # positions are added to it
        refused(f'mask.window is {window!r}; accepted', *shapes(), mask=Mask(window=window))
    for offset in (2**30 + 1, -(2**30) - 1, 2**31, 2**70, np.int32(2**31 - 2)):
        refused(f'mask.offset is {offset}; accepted: -2', *shapes(), mask=Mask(offset=offset))
    refused('mask.offset has shape .* bool', *shapes(), mask=Mask(offset=True))
    for offset in (1.0, jnp.zeros(2, jnp.int32)):
        refused('mask.offset has shape', *shapes(S=9), mask=Mask(offset=offset))


def test_biases() -> None:
    refused('bias is for 3 heads, q_BTNH has 4', *shapes(), bias=AlibiBias(jnp.ones(3)))
    refused(r'bias.slopes_N has shape \(\), expected', *shapes(), bias=AlibiBias(jnp.ones(())))
    refused(r'bias.table_PN has shape \(32,\)', *shapes(), bias=Buckets(jnp.ones(32)))
    refused('bias.table_PN has 1 buckets', *shapes(), bias=Buckets(jnp.ones((1, 4))))
    refused('bias.max_distance is 16', *shapes(), bias=Buckets(jnp.ones((32, 4)), 16))
    too_few = Buckets(jnp.ones((3, 4)), bidirectional=True)
    refused('4 where bidirectional', *shapes(), bias=too_few)


def test_key_biases() -> None:
    for shape in ((2, 2, 8), (2, 4, 7), (4, 8), (1, 4, 8)):
        refused(
            r'key_bias_BNS has shape \(.*\), expected \(2, 4, 8\): batch, query heads, keys',
            *shapes(),
            key_bias_BNS=jnp.zeros(shape),
        )
    half = jnp.zeros((2, 4, 8), jnp.bfloat16)
    refused('key_bias_BNS has dtype bfloat16, accepted: float32', *shapes(), key_bias_BNS=half)


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


def test_a_tpu_has_its_kernel(caplog: pytest.LogCaptureFixture) -> None:
    with on_device('TPU v5 lite', 'tpu'):
        messages = chosen(caplog, shapes())
    assert messages == [
        "attention: implementation 'pallas_tpu' on TPU v5 lite, not library: T=8 and S=8 are not "
        'both multiples of 128'
    ]


def test_a_gpu_has_its_kernel(caplog: pytest.LogCaptureFixture) -> None:
    with on_device('NVIDIA A100-SXM4-80GB', 'gpu'):
        message, cost = chosen(caplog, shapes())
    assert message.startswith(
        "attention: implementation 'pallas_gpu' on gpu (NVIDIA A100-SXM4-80GB), not library: "
        'cuDNN has no float32 attention; not mosaic_gpu: '
    )
    assert 'at most 52 of 312 TFLOP/s' in cost


@pytest.mark.parametrize(
    ('device', 'name'),
    [(('TPU v5 lite', 'tpu'), 'pallas_tpu'), (('NVIDIA A100-SXM4-80GB', 'gpu'), 'pallas_gpu')],
)
def test_factors_have_the_kernels_of_their_device(
    caplog: pytest.LogCaptureFixture, device: tuple[str, str], name: str
) -> None:
    with on_device(*device):
        message, *_ = chosen(caplog, shapes(), bias=ScaleInvariantBias(jnp.ones(4)))
    assert message.startswith(f"attention: implementation '{name}' on ")


@pytest.mark.parametrize(
    ('name', 'reason'),
    [
        ('pallas_tpu', 'the device is a cpu, not a TPU'),
        ('pallas_gpu', 'it runs on GPUs, this is a cpu'),
        ('mosaic_gpu', 'the device is cpu and not a Hopper GPU'),
    ],
)
def test_a_named_implementation_runs_or_says_why_not(name: str, reason: str) -> None:
    refused(f"implementation='{name}' cannot: {reason}", *shapes(), implementation=name)
