"""Device data sheets, and the peak FLOP/s that MFU is a share of."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import time

import jax
import jax.numpy as jnp

from nope.runtime import memory


@dataclasses.dataclass(frozen=True)
class Device:
    """A device's data sheet, of a chip that is two devices the half of its.

    flops: dense, per second, for bfloat16 inputs. memory: bytes. bandwidth: of that memory, bytes
    per second. float32: FLOP/s of float32 products without tensor cores; None where no sheet
    states it. per_chip: devices of a chip.
    """

    flops: float
    memory: float
    bandwidth: float
    float32: float | None = None
    per_chip: int = 1


# Share of a device's memory that programs get; the rest is the runtime's (on GPUs of what
# XLA_PYTHON_CLIENT_MEM_FRACTION leaves, which the launchers set to this).
USABLE = 0.9

SHEET = 'of dense bfloat16 products'  # a sheet's `flops`

# By a part of `device_kind`; of two that fit, the first.
DEVICES = {
    'H200': Device(989e12, 141e9, 4.8e12, 67e12),
    'GH200': Device(989e12, 96e9, 4.0e12, 67e12),
    'H100 PCIe': Device(756e12, 80e9, 2.0e12, 51e12),
    'H100 NVL': Device(835e12, 94e9, 3.9e12, 60e12),
    'H100': Device(989e12, 80e9, 3.35e12, 67e12),
    'A100': Device(312e12, 80e9, 2.04e12, 19.5e12),
    'RTX 4090': Device(165e12, 24e9, 1.01e12, 82.6e12),
    'TPU v4': Device(275e12, 32 * 2**30, 1.23e12),
    'TPU v5 lite': Device(197e12, 16 * 2**30, 0.82e12),
    'TPU v5e': Device(197e12, 16 * 2**30, 0.82e12),
    'TPU v5': Device(459e12, 95 * 2**30, 2.77e12),
    'TPU v6': Device(918e12, 32 * 2**30, 1.64e12),
    'TPU7x': Device(1153.5e12, 96 * 2**30, 3.69e12, per_chip=2),
}


# Names of devices on command lines -> those of their data sheets.
NAMES = {
    'h200': 'H200',
    'h100': 'H100',
    'a100': 'A100',
    'rtx4090': 'RTX 4090',
    'v4': 'TPU v4',
    'v5e': 'TPU v5e',
    'v5p': 'TPU v5',
    'v6e': 'TPU v6',
    'tpu7x': 'TPU7x',
}


# Share the name of a faster one.
_SLOWER = re.compile(r'Laptop|RTX 4090 D\b')
# NVIDIA's before compute capability 8.0, for which XLA has no Triton, and cuDNN no fused attention.
_BEFORE_AMPERE = re.compile(r'\b([KMPVT]\d+|GTX|TITAN|GeForce RTX 20\d\d|MX\d+|Quadro)\b')


def no_ampere(kind: str) -> str | None:
    """Reason why a GPU of that `device_kind` is none of NVIDIA's from Ampere on, or None."""
    if 'NVIDIA' not in kind and 'Tesla' not in kind:
        return f'this is {kind} and no GPU of NVIDIA'
    return f'this is {kind}, older than Ampere' if _BEFORE_AMPERE.search(kind) else None


@dataclasses.dataclass(frozen=True)
class Target:
    """Devices that work is counted for. flops: FLOP/s of one at its peak. rate: what that peak
    is."""

    name: str
    flops: float
    count: int
    rate: str


def target(text: str, field: str) -> Target:
    """The devices of 'NAME', 'NAME:COUNT' or 'NAME:4x4', a product, of chips that need not be
    there. ValueError, naming the field, for others."""
    name, _, size = text.partition(':')
    if name.lower() not in NAMES or not re.fullmatch(r'[1-9]\d*(x[1-9]\d*)*', size or '1'):
        raise ValueError(
            f'{field} is {text!r}; accepted: {", ".join(NAMES)}, each with a number of devices '
            '(h100:8) or a grid of them (v5e:4x4)'
        )
    sides = [int(side) for side in (size or '1').split('x')]
    device = DEVICES[NAMES[name.lower()]]
    return Target(text, device.flops, math.prod(sides) * device.per_chip, SHEET)


def present() -> Target:
    """The devices of this command, at the peak of `peak_flops`."""
    kind = jax.local_devices()[0].device_kind
    rate = SHEET if known(kind) else 'of a product as measured'
    return Target(kind, peak_flops(), jax.device_count(), rate)


def known(kind: str) -> Device | None:
    """The data sheet of a `device_kind`: that of 'H100' for 'NVIDIA H100 80GB HBM3'. None where
    there is none, as for what shares the name of a faster one."""
    if _SLOWER.search(kind):
        return None
    names = (name for name in DEVICES if re.search(rf'\b{name}(?!\d)', kind, re.IGNORECASE))
    return DEVICES.get(next(names, ''))


def memory_of(device: jax.Device) -> float:
    """Bytes for programs on a device: by its runtime, else by its data sheet. A device without
    memory of its own has its part of the host's."""
    limit = (device.memory_stats() or {}).get('bytes_limit')
    if limit:
        return float(limit)
    sheet = known(device.device_kind)
    if sheet is not None:
        return USABLE * sheet.memory
    return memory.of_host() / jax.local_device_count()


@functools.cache
def peak_flops(dtype: str = 'bfloat16') -> float:
    """FLOP/s per device by the data sheet for products of that dtype (bfloat16 stands for an
    unstated float32). Unknown devices are measured: the fastest of a few products, float32 on a
    CPU, whose devices share its cores, and bfloat16 elsewhere."""
    device = known(jax.local_devices()[0].device_kind)
    if device is None:
        if jax.default_backend() == 'cpu':
            return measured_matmul_flops() / jax.local_device_count()
        return measured_matmul_flops(8192, dtype='bfloat16')
    return device.float32 if dtype == 'float32' and device.float32 else device.flops


def measured_matmul_flops(size: int = 1536, repeats: int = 5, dtype: str = 'float32') -> float:
    """FLOP/s of a [size, size] matrix product on the default device."""
    x = jnp.ones((size, size), dtype)
    product = jax.jit(jnp.matmul)
    product(x, x).block_until_ready()
    best = float('inf')
    for _ in range(repeats):
        start = time.perf_counter()
        product(x, x).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
