"""Peak matrix-product rate of the device at hand, the denominator of MFU."""

from __future__ import annotations

import functools
import time

import jax
import jax.numpy as jnp

# Dense peak FLOP/s per device for bfloat16 inputs, by a part of `device_kind`.
_BF16_PEAKS = {
    'H200': 989e12,
    'H100': 989e12,
    'A100': 312e12,
    'TPU v4': 275e12,
    'TPU v5 lite': 197e12,
    'TPU v5e': 197e12,
    'TPU v5p': 459e12,
    'TPU v5': 459e12,
    'TPU v6': 918e12,
    'TPU7x': 2307e12,
}


@functools.cache
def peak_flops() -> float:
    """FLOP/s per device: the data sheet's where it is known, else measured in half a second
    (float32, the largest of a few products)."""
    kind = jax.local_devices()[0].device_kind
    for name, peak in _BF16_PEAKS.items():
        if name.lower() in kind.lower():
            return peak
    return measured_matmul_flops() / jax.local_device_count()


def measured_matmul_flops(size: int = 1536, repeats: int = 5) -> float:
    """FLOP/s of a float32 [size, size] matrix product on the default device."""
    x = jnp.ones((size, size), jnp.float32)
    product = jax.jit(jnp.matmul)
    product(x, x).block_until_ready()
    best = float('inf')
    for _ in range(repeats):
        start = time.perf_counter()
        product(x, x).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
