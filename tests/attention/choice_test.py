"""What is chosen by itself on each kind of device, and what the log says of it."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Iterator

import pytest

from nope.attention import api, library, mosaic_gpu
from nope.attention.backend import Call
from nope.attention.pallas_gpu import memory

PLAIN = Call(
    'gpu', 'NVIDIA H200', 8, 2048, 2048, 32, 4, 64, 'bfloat16', True, None, False, False, None,
    False, lse=False,
)  # fmt: skip
ENTROPY = {'entropy': True, 'lse': True}
DECODE = {'queries': 1, 'keys': 16384, 'offset': True}
KINDS: dict[str, dict] = {
    'h100': {'device_kind': 'NVIDIA H100 80GB HBM3'},
    'h200': {'device_kind': 'NVIDIA H200'},
    'a100': {'device_kind': 'NVIDIA A100-SXM4-80GB'},
    'rtx4090': {'device_kind': 'NVIDIA GeForce RTX 4090'},
    'v5e': {'platform': 'tpu', 'device_kind': 'TPU v5 lite'},
    'v6e': {'platform': 'tpu', 'device_kind': 'TPU v6 lite'},
    'cpu': {'platform': 'cpu', 'device_kind': 'cpu'},
}
HOPPER = ('h100', 'h200')
# What is asked for -> changes of PLAIN, and what Hopper GPUs, other GPUs and TPUs have for it.
CHOICES: dict[str, tuple[dict, str, str, str]] = {
    'plain': ({}, 'library', 'library', 'library'),
    'window': ({'window': 1000}, 'library', 'library', 'library'),
    'log-sum-exp': ({'lse': True}, 'mosaic_gpu', 'pallas_gpu', 'pallas_tpu'),
    'entropy': (ENTROPY, 'mosaic_gpu', 'pallas_gpu', 'pallas_tpu'),
    'few': ({'queries': 8, 'keys': 8, **ENTROPY}, 'pallas_gpu', 'pallas_gpu', 'pallas_tpu'),
    'more': ({'queries': 17, 'keys': 17, **ENTROPY}, 'mosaic_gpu', 'pallas_gpu', 'pallas_tpu'),
    'decode': (DECODE, 'pallas_gpu', 'pallas_gpu', 'pallas_tpu'),
    'bias': ({'bias': 'AlibiBias'}, 'mosaic_gpu', 'pallas_gpu', 'pallas_tpu'),
    'two-sided bias': (
        {'bias': 'AlibiBias', 'causal': False},
        *('pallas_gpu', 'pallas_gpu', 'pallas_tpu'),
    ),
    'buckets': ({'bias': 'Buckets'}, 'pallas_gpu', 'pallas_gpu', 'pallas_tpu'),
    'factors': ({'bias': 'ScaleInvariantBias'}, 'pallas_gpu', 'pallas_gpu', 'pallas_tpu'),
    'key bias': ({'key_bias': True}, 'mosaic_gpu', 'pallas_gpu', 'pallas_tpu'),
    'packed': ({'segmented': True}, 'mosaic_gpu', 'pallas_gpu', 'pallas_tpu'),
    'float32': ({'dtype': 'float32'}, 'pallas_gpu', 'pallas_gpu', 'pallas_tpu'),
    'long': ({'queries': 32768, 'keys': 32768}, 'library', 'library', 'pallas_tpu'),
    'ragged': ({'queries': 1000, 'keys': 1000}, 'library', 'library', 'pallas_tpu'),
    'odd': ({'queries': 1001, 'keys': 1001}, 'mosaic_gpu', 'pallas_gpu', 'pallas_tpu'),
}


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has a GPU and a JAX with Mosaic for it, and no choices from before."""
    monkeypatch.setattr(library, '_gpu_is_here', lambda: True)
    monkeypatch.setattr(mosaic_gpu.kernel, '_missing', lambda: None)
    api._fastest.cache_clear()
    api._say_chosen.cache_clear()
    yield
    api._fastest.cache_clear()


def choice(**changes) -> str:
    return api.choose(dataclasses.replace(PLAIN, **changes), None).name


@pytest.mark.parametrize('asked', CHOICES)
@pytest.mark.parametrize('kind', KINDS)
def test_the_choice(kind: str, asked: str) -> None:
    changes, on_hopper, on_gpu, on_tpu = CHOICES[asked]
    device = KINDS[kind]
    on_gpu = on_hopper if kind in HOPPER else on_gpu
    expected = {'gpu': on_gpu, 'tpu': on_tpu, 'cpu': 'chunked'}[device.get('platform', 'gpu')]
    assert choice(**device, **changes) == expected


def test_a_jax_without_mosaic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mosaic_gpu.kernel, '_missing', lambda: 'there is none')
    assert choice(**ENTROPY) == 'pallas_gpu'


@pytest.mark.parametrize('kind', ['AMD Instinct MI300X', 'Tesla V100-SXM2-16GB', 'Tesla T4'])
def test_a_gpu_without_the_vendors_attention_has_the_loop(kind: str) -> None:
    assert choice(device_kind=kind) == 'chunked'


@pytest.mark.parametrize('lengths', [
    {'queries': 1, 'keys': 1}, {'queries': 1, 'keys': 211, 'causal': False},
])  # fmt: skip
def test_a_single_query_or_key_is_not_cudnns(lengths: dict) -> None:
    assert choice(**lengths) == 'pallas_gpu'


def test_float16_on_a_tpu_has_the_limits_of_float32() -> None:
    long = {'platform': 'tpu', 'device_kind': 'TPU v5 lite', 'queries': 200_000, 'keys': 200_000}
    for dtype in ('float32', 'float16'):
        assert choice(**long, dtype=dtype) == 'chunked'
    assert choice(**long) == 'pallas_tpu'


@pytest.mark.parametrize(('kind', 'most'), [
    ('NVIDIA H200', 256), ('NVIDIA GH200 480GB', 256), ('NVIDIA B200', 256),
    ('NVIDIA A100-SXM4-80GB', 128), ('NVIDIA L4', 128),
])  # fmt: skip
def test_head_dims_of_the_vendor_library(kind: str, most: int) -> None:
    assert choice(device_kind=kind, head_dim=most) == 'library'
    assert choice(device_kind=kind, head_dim=most + 8) != 'library'


def test_without_a_gpu_in_the_process_programs_for_one_have_a_kernel(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, '_gpu_is_here', lambda: False)
    with caplog.at_level(logging.INFO, logger='nope.attention.api'):
        assert choice() == 'mosaic_gpu'
    (message,) = [record.getMessage() for record in caplog.records]
    assert 'not library: cuDNN plans its programs on the GPU, and this process has none' in message


@pytest.mark.parametrize(('asked', 'name', 'level'), [
    ({}, 'library', logging.INFO), (ENTROPY, 'mosaic_gpu', logging.INFO),
    ({'bias': 'Buckets'}, 'chunked', logging.WARNING),
])  # fmt: skip
def test_a_jax_without_triton(
    asked: dict, name: str, level: int,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Plain attention stays where it is, and on Hopper what has a kernel there; what had a Triton
    kernel is slower, and says so."""
    monkeypatch.setitem(sys.modules, memory.TRITON, None)
    with caplog.at_level(logging.INFO, logger='nope.attention.api'):
        assert choice(**asked) == name
    (record,) = caplog.records
    assert record.levelno == level
    assert ('has no Triton compiler for Pallas' in record.getMessage()) == (name == 'chunked')


def test_float32_on_a_gpu_says_what_it_costs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger='nope.attention.api'):
        choice(dtype='float32')
    assert caplog.records[-1].getMessage() == (
        'attention: float32 takes three products of tf32 on gpu (NVIDIA H200): at most 165 of '
        "989 TFLOP/s, which model.dtype='bfloat16' has"
    )
