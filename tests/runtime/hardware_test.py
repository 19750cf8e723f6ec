from __future__ import annotations

import types

import jax
import pytest

from nope.runtime import hardware, memory


@pytest.mark.parametrize(
    ('device_kind', 'peak'),
    [
        ('NVIDIA H200', 989e12),
        ('NVIDIA GH200 480GB', 989e12),
        ('NVIDIA GeForce RTX 4090', 165e12),
        ('NVIDIA A100-SXM4-80GB', 312e12),
        ('TPU v4', 275e12),
        ('TPU v5 lite', 197e12),
        ('TPU v5p', 459e12),
        ('TPU v6 lite', 918e12),
    ],
)
def test_known_devices_have_the_peak_of_their_data_sheet(
    monkeypatch: pytest.MonkeyPatch, device_kind: str, peak: float
) -> None:
    device = types.SimpleNamespace(device_kind=device_kind)
    monkeypatch.setattr(jax, 'local_devices', lambda: [device])
    assert hardware.peak_flops.__wrapped__() == peak


def test_the_rate_of_another_device_is_measured_and_shared_between_its_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The virtual devices of a CPU share its cores."""

    def measured(size: int = 1536, dtype: str = 'float32') -> float:
        return {(1536, 'float32'): 8e9, (8192, 'bfloat16'): 9e9}[size, dtype]

    monkeypatch.setattr(hardware, 'measured_matmul_flops', measured)
    assert hardware.peak_flops.__wrapped__() == 8e9 / jax.local_device_count()
    devices = [types.SimpleNamespace(device_kind='another')] * 8
    monkeypatch.setattr(jax, 'local_devices', lambda: devices)
    monkeypatch.setattr(jax, 'local_device_count', lambda: 8)
    monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
    assert hardware.peak_flops.__wrapped__() == 9e9


def test_measured_rate_is_that_of_the_fastest_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 2.0, 10.0, 10.5, 20.0, 21.0])
    monkeypatch.setattr(hardware.time, 'perf_counter', lambda: next(clock))
    assert hardware.measured_matmul_flops(size=8, repeats=3) == 2 * 8**3 / 0.5


def test_memory_is_what_the_runtime_says_or_the_data_sheet_or_a_part_of_the_host() -> None:
    def device(kind: str, stats: dict | None) -> types.SimpleNamespace:
        return types.SimpleNamespace(device_kind=kind, memory_stats=lambda: stats)

    assert hardware.memory_of(device('NVIDIA H200', {'bytes_limit': 100})) == 100
    assert hardware.known('NVIDIA RTX A1000') is None
    assert hardware.memory_of(device('TPU v4', None)) == 0.9 * 32 * 2**30
    host = hardware.memory_of(device('cpu', None))
    assert host * jax.local_device_count() == memory.of_host()


@pytest.mark.parametrize(
    ('text', 'kind', 'count'),
    [
        ('h100', 'H100', 1),
        ('H200:8', 'H200', 8),
        ('v5e:16x16', 'TPU v5e', 256),
        ('v5p:2x2x1', 'TPU v5', 4),
    ],
)
def test_devices_that_are_not_there_have_their_data_sheets_peak(
    text: str, kind: str, count: int
) -> None:
    found = hardware.target(text, '--plan-for')
    assert (found.flops, found.count) == (hardware.DEVICES[kind].flops, count)


@pytest.mark.parametrize('text', ['b200', 'h100:0', 'h100:eight', '', 'v5e:4x'])
def test_devices_that_are_not_known_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=rf"^--plan-for is '{text}'; accepted: h200, h100, a100"):
        hardware.target(text, '--plan-for')


def test_a_chip_of_two_devices_counts_twice_at_half_its_sheet() -> None:
    """2,307 TFLOP/s and 192 GiB of a TPU7x chip."""
    found = hardware.target('tpu7x:2x2', '--plan-for')
    assert (found.count, found.count * found.flops) == (8, 4 * 2307e12)
    assert hardware.DEVICES['TPU7x'].memory == 96 * 2**30


@pytest.mark.parametrize('model', ['4090 Laptop GPU', '4090 D'])
def test_a_slower_device_of_the_same_name_has_no_data_sheet(model: str) -> None:
    assert hardware.known(f'NVIDIA GeForce RTX {model}') is None
