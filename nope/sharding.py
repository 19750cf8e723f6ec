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
from jax.experimental import mesh_utils, multihost_utils
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
    """Devices along each axis; the one that is None takes all that the others leave."""

    data: int | None = None
    fsdp: int | None = 1
    tensor: int | None = 1
    context: int | None = 1

    def sizes(self, devices: int, field: str = 'compute.mesh') -> tuple[int, ...]:
        """The mesh's shape over `devices` devices; ValueError, naming `field`, where it does not
        fit."""
        asked = (self.data, self.fsdp, self.tensor, self.context)
        given = [size for size in asked if size is not None]
        if min(given, default=1) < 1 or asked.count(None) > 1:
            raise ValueError(
                f'{field} is {self}; sizes must be at least 1, and one of them may be None for '
                'all devices that are left'
            )
        known = math.prod(given)
        sizes = tuple(devices // known if size is None else size for size in asked)
        if math.prod(sizes) != devices:
            raise ValueError(
                f'{field} {self} takes {max(math.prod(sizes), known)} devices; there are {devices}'
            )
        return sizes


def make_mesh(
    config: MeshConfig, devices: list[jax.Device] | None = None, field: str = 'compute.mesh'
) -> Mesh:
    """A mesh over `devices` (default: all) whose axes GSPMD is free to use.

    Of several TPU slices, which a slower network joins, each holds a part of the data axis and all
    of the others. On several GPU machines any axis may reach over all. Devices come in JAX's order,
    machine after machine, so that the last axes stay inside one. ValueError where the sizes do not
    fit the devices or the slices; it names `field`.
    """
    devices = jax.devices() if devices is None else devices
    sizes = config.sizes(len(devices), field)
    slices = len({getattr(device, 'slice_index', 0) for device in devices})
    auto = (AxisType.Auto,) * len(AXES)
    if devices[0].platform != 'tpu':  # JAX calls each GPU machine a slice
        if slices == 1:
            return jax.make_mesh(sizes, AXES, axis_types=auto, devices=devices)
        return Mesh(np.asarray(devices).reshape(sizes), AXES, axis_types=auto)
    if slices == 1:  # `jax.make_mesh` lets an axis take part of a side of the grid on v5e alone
        placed = mesh_utils.create_device_mesh(sizes, devices, allow_split_physical_axes=True)
        return Mesh(placed, AXES, axis_types=auto)
    if sizes[0] % slices:
        raise ValueError(
            f'{field}.data is {sizes[0]} over {slices} slices; it must be a multiple of them'
        )
    inside = (sizes[0] // slices, *sizes[1:])
    placed = mesh_utils.create_hybrid_device_mesh(
        inside, (slices, 1, 1, 1), devices, allow_split_physical_axes=True
    )
    return Mesh(placed, AXES, axis_types=auto)


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

    def keep(entry: Any, size: int) -> Any:
        names = (entry,) if isinstance(entry, str) else tuple(entry or ())
        parts = math.prod(mesh.shape[name] for name in names)
        return entry if size % parts == 0 else None

    def of_leaf(spec: PartitionSpec, leaf: Any) -> NamedSharding:
        entries = tuple(spec) + (None,) * (len(leaf.shape) - len(spec))
        return NamedSharding(mesh, PartitionSpec(*map(keep, entries, leaf.shape)))

    specs = nn.logical_to_mesh(nn.get_partition_spec(boxed), RULES)
    return jax.tree.map(
        of_leaf, specs, unbox(boxed), is_leaf=lambda x: isinstance(x, PartitionSpec)
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
    """Sharding of a batch's arrays [A, B / A, T]: the batch alone (the activations' own constraint
    shards the sequence)."""
    return NamedSharding(mesh, PartitionSpec(None, ('data', 'fsdp')))


def rows(mesh: Mesh, rules: Rules = RULES) -> NamedSharding:
    """Sharding of evaluation blocks [B, T + 1]: the batch alone."""
    return NamedSharding(mesh, PartitionSpec(dict(rules)['batch']))


def replicated(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec())


def rows_here(mesh: Mesh, accumulate: int, batch_size: int) -> np.ndarray:
    """Numbers of the examples of a batch on this process's devices, in the order of
    `place_micro_batches`."""
    examples = np.arange(batch_size).reshape(accumulate, -1)
    return examples[:, _columns_here(mesh, examples.shape)].ravel()


def place_micro_batches(mesh: Mesh, accumulate: int, batch_size: int, local: Any) -> Any:
    """A batch's arrays [A, B / A, ...] on all devices, of which those of `local`, [rows, ...], hold
    the examples `rows_here`. `local`: an array or a tree of them."""
    sharding, shape = micro_batches(mesh), (accumulate, batch_size // accumulate)

    def place(local: np.ndarray) -> jax.Array:
        size = local.shape[-1]
        local = local.reshape(accumulate, -1, size)
        if sharding.is_fully_addressable:
            return jax.device_put(local, sharding)
        where = np.cumsum(_columns_here(mesh, shape)) - 1

        def part(index: Any) -> np.ndarray:
            return local[index[0], where[index[1]]]

        return jax.make_array_from_callback((*shape, size), sharding, part)

    return jax.tree.map(place, local)


def _columns_here(mesh: Mesh, shape: tuple[int, int]) -> np.ndarray:
    """Whether each row of micro-batches [A, B / A] lies on a device of this process."""
    here = np.zeros(shape[1], bool)
    for index in micro_batches(mesh).addressable_devices_indices_map(shape).values():
        assert index is not None
        here[index[1]] = True
    return here


def put(array: np.ndarray, sharding: jax.sharding.Sharding) -> jax.Array:
    """An array that every process has, on the devices of all."""
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def fetch(tree: Any) -> Any:
    """Arrays as NumPy arrays, whole on every process. All processes call it."""

    def whole(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
            return leaf
        return leaf if leaf.is_fully_replicated else multihost_utils.process_allgather(leaf, True)

    return jax.device_get(jax.tree.map(whole, tree))


def batch_parts(mesh: Mesh, rules: Rules = RULES) -> int:
    """Number of parts that the mesh splits the batch into."""
    return math.prod(mesh.shape[axis] for axis in dict(rules)['batch'] or ())
