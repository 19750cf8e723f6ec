"""Lower bound of a training step's memory by arithmetic, before anything is built."""

from __future__ import annotations

import jax.numpy as jnp
from jax.sharding import Mesh

from nope.model import ModelConfig, counts
from nope.runtime import hardware
from nope.training.config import Compute, TrainConfig

GIB = 2.0**30
FLOAT32 = 4
TRAINED = 3  # arrays of a trained parameter: itself and AdamW's two moments


def state_bytes(model: ModelConfig, config: TrainConfig) -> float:
    """Bytes of the float32 parameters and the optimizer's moments of those that are trained, on all
    devices together."""
    copies = TRAINED if config.optimizer.trains in ('params', 'all') else 1
    return float(copies * FLOAT32 * counts.parameters(model))


def least_bytes(model: ModelConfig, config: TrainConfig, compute: Compute, mesh: Mesh) -> float:
    """Least bytes on a device, however its arrays are sharded: float32 parameters and moments,
    tokens of the whole batch, and one hidden state of each layer's input. Recomputed layers keep
    one layer's."""
    tokens = config.batch_size * config.block
    at_once = tokens / compute.micro_batches(config.batch_size, mesh)
    kept = 1 if model.remat != 'none' else model.layers
    hidden = at_once * model.width * jnp.dtype(model.dtype).itemsize * kept
    return (state_bytes(model, config) + FLOAT32 * tokens + hidden) / mesh.size


def check_memory(
    model: ModelConfig, config: TrainConfig, compute: Compute, mesh: Mesh, section: str = 'train'
) -> None:
    """ValueError, naming the batch of `section` and the model, if a step needs more than the
    devices of the mesh hold."""
    least = least_bytes(model, config, compute, mesh)
    there = hardware.memory_of(mesh.local_devices[0])
    if least > there:
        raise ValueError(
            f'{section}.batch_size {config.batch_size:,} of {config.block:,} tokens and a model of '
            f'{counts.parameters(model):,} parameters need at least {least / GIB:,.1f} GiB on each '
            f'device; accepted: up to {there / GIB:,.1f} GiB, which it has'
        )
