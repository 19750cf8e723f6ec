"""Every encoding and every rule of scaling once, small, by its name in a config."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from nope.positions import (
    NTK,
    Alibi,
    ByParts,
    DynamicNTK,
    ForgetGate,
    Kerple,
    Learned,
    Linear,
    Llama3,
    LongRoPE,
    NoPE,
    Position,
    RoPE,
    Sandwich,
    ScaleInvariant,
    Scaling,
    Sinusoidal,
    Split,
    T5Bias,
    Unscaled,
    Yarn,
)

TRAIN_LENGTH = 16

SCALINGS: dict[str, Scaling] = {
    'none': Unscaled(),
    'linear': Linear(2.0),
    'ntk': NTK(2.0),
    'dynamic_ntk': DynamicNTK(2.0, TRAIN_LENGTH),
    'by_parts': ByParts(2.0, TRAIN_LENGTH),
    'yarn': Yarn(2.0, TRAIN_LENGTH),
    'llama3': Llama3(2.0, TRAIN_LENGTH),
    'longrope': LongRoPE((1.0, 1.0, 1.1, 1.2), (1.0, 1.5, 2.0, 4.0), TRAIN_LENGTH, 1.1),
}
ENCODINGS: dict[str, Position] = {
    'none': NoPE(),
    'rope': RoPE(),
    'alibi': Alibi(),
    't5': T5Bias(buckets=8, max_distance=12),
    'sinusoidal': Sinusoidal(),
    'learned': Learned(size=32),
    'forget': ForgetGate(),
    'kerple': Kerple(),
    'sandwich': Sandwich(dims=8),
    'scale_invariant': ScaleInvariant(tau=2.0),
    'split': Split(Alibi(), share=0.5),
}


@functools.partial(jax.jit, static_argnums=0)
def encode(
    position: Position, q_BTNH: Any, k_BTKH: Any, positions_BT: Any, length: int
) -> tuple[jax.Array, jax.Array]:
    return position.encode(q_BTNH, k_BTKH, positions_BT, length)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)
