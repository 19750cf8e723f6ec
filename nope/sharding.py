"""The device mesh and the one table that maps logical axes to it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

AXES = ('data', 'fsdp', 'tensor', 'context')

# Logical axis -> mesh axes. Activations shard over batch and sequence; parameters over
# 'fsdp' along the model width and over 'tensor' along heads, MLP and vocabulary.
Rules = tuple[tuple[str, str | tuple[str, ...] | None], ...]
RULES: Rules = (
    ('batch', ('data', 'fsdp')),
    ('sequence', 'context'),
    ('activation', None),
    ('embed', 'fsdp'),
    ('heads', 'tensor'),
    ('kv_heads', 'tensor'),
    ('head_dim', None),
    ('mlp', 'tensor'),
    ('vocab', 'tensor'),
    ('norm', None),
    ('positions', None),
    ('buckets', None),
    ('layers', None),
)

# Generation makes one token at a time: the batch takes the devices of the sequence too.
GENERATION_RULES = tuple(
    (name, {'batch': ('data', 'fsdp', 'context'), 'sequence': None}.get(name, axes))
    for name, axes in RULES
)


@dataclasses.dataclass(frozen=True)
class MeshConfig:
    """Devices along each axis; `data = 0` takes all that the others leave."""

    data: int = 0
    fsdp: int = 1
    tensor: int = 1
    context: int = 1

    def sizes(self, devices: int) -> tuple[int, ...]:
        """The mesh's shape over `devices` devices; ValueError where it does not fit."""
        rest = self.fsdp * self.tensor * self.context
        if min(self.fsdp, self.tensor, self.context) < 1 or self.data < 0:
            raise ValueError(f'compute.mesh is {self}; sizes must be at least 1 (data: 0 or more)')
        data = self.data or devices // rest
        if data * rest != devices:
            raise ValueError(
                f'compute.mesh {self} takes {max(data, 1) * rest} devices; there are {devices}'
            )
        return (data, self.fsdp, self.tensor, self.context)


def make_mesh(config: MeshConfig, devices: list[jax.Device] | None = None) -> Mesh:
    """A mesh over `devices` (default: all) whose axes GSPMD is free to use."""
    devices = jax.devices() if devices is None else devices
    sizes = config.sizes(len(devices))
    return jax.make_mesh(sizes, AXES, axis_types=(AxisType.Auto,) * len(AXES), devices=devices)


@contextlib.contextmanager
def use(mesh: Mesh, rules: Rules = RULES) -> Iterator[None]:
    """Makes `mesh` and the rules current for tracing."""
    with jax.set_mesh(mesh), nn.logical_axis_rules(rules):
        yield


def of_boxed(mesh: Mesh, boxed: Any) -> Any:
    """Shardings for a tree whose leaves carry logical axis names (unnamed leaves: replicated).

    An axis that the mesh does not divide evenly is left whole, so that four KV heads run on
    a tensor axis of eight.
    """
    specs = nn.logical_to_mesh(nn.get_partition_spec(boxed), RULES)
    return jax.tree.map(
        lambda spec, leaf: NamedSharding(mesh, _divisible(mesh, spec, leaf.shape)),
        specs,
        unbox(boxed),
        is_leaf=lambda x: isinstance(x, PartitionSpec),
    )


def unbox(boxed: Any) -> Any:
    """The bare leaves of a tree with logical axis names (`nn.unbox` would also constrain them,
    which works on traced arrays only)."""
    return jax.tree.map(
        lambda x: x.value if isinstance(x, nn.LogicallyPartitioned) else x,
        boxed,
        is_leaf=lambda x: isinstance(x, nn.LogicallyPartitioned),
    )


def micro_batches(mesh: Mesh) -> NamedSharding:
    """Sharding of blocks [A, B / A, T + 1]: the batch alone (T + 1 is rarely divisible; the
    activations' own constraint shards the sequence)."""
    return NamedSharding(mesh, PartitionSpec(None, ('data', 'fsdp')))


def rows(mesh: Mesh, rules: Rules = RULES) -> NamedSharding:
    """Sharding of evaluation blocks [B, T + 1]: the batch alone."""
    return NamedSharding(mesh, PartitionSpec(dict(rules)['batch']))


def replicated(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec())


def place(sharding: NamedSharding, local: np.ndarray) -> jax.Array:
    """A global array from this process's rows."""
    return jax.make_array_from_process_local_data(sharding, local)


def batch_parts(mesh: Mesh, rules: Rules = RULES) -> int:
    """How many parts the batch is split into."""
    return math.prod(mesh.shape[axis] for axis in dict(rules)['batch'] or ())


def _divisible(mesh: Mesh, spec: PartitionSpec, shape: tuple[int, ...]) -> PartitionSpec:
    def keep(entry: Any, size: int) -> Any:
        names = (entry,) if isinstance(entry, str) else tuple(entry or ())
        parts = math.prod(mesh.shape[name] for name in names)
        return entry if size % parts == 0 else None

    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    return PartitionSpec(*(keep(e, s) for e, s in zip(entries, shape, strict=True)))
