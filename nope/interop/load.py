"""Loading of a directory's tensors onto devices, two tensors in host memory at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from nope.interop.describe import tensors_of
from nope.interop.directory import Directory
from nope.interop.mapping import LAM, Parameter, Tensor
from nope.interop.row_major import copied
from nope.interop.safetensors import CheckpointFileError, digest
from nope.model import ModelConfig
from nope.model.lam import initial
from nope.runtime.ahead import one_ahead
from nope.variables import Variables, abstract_variables

Progress = Callable[[Iterable[Tensor]], Iterable[Tensor]]


def load(
    directory: Directory, model: ModelConfig, mesh: Mesh, *, progress: Progress = iter
) -> Variables:
    """Variables of `model` (as found by `describe`), float32, with their final shardings.

    A tensor is read and checked while the one before it is placed on the devices part by part, each
    receiving its own shard, and released: the host never holds three. Lambda comes from
    `scale_param` tensors, else it is neutral. ValueError as `describe`, and for damage that shows
    only in the values.
    """
    tensors = tensors_of(directory, model)
    heads = [name for name in directory.tensors if name.endswith('lm_head.weight')]
    if model.tied_head and heads:
        embedding = next(t.name for t in tensors if t.parts[0].path == ('embedding',))
        first, second = (digest(directory.read(name)) for name in (embedding, heads[0]))
        if first != second:
            raise CheckpointFileError(
                f'{directory.path}: config.json ties the output head to the embedding, but '
                f'tensors {embedding!r} and {heads[0]!r} differ'
            )
    abstract = abstract_variables(model, mesh)
    places = flax.traverse_util.flatten_dict(
        {'params': abstract['params'], 'lam': abstract['lam']['head']}
    )
    arrays: dict[tuple[str, ...], jax.Array] = {}

    def path_of(part: Parameter) -> tuple[str, ...]:
        return part.path if part.path == LAM else ('params', *part.path)

    def read(tensor: Tensor) -> list[tuple[jax.Array, tuple[int, ...]]]:
        pieces = tensor.layout.split(directory.read(tensor.name))
        parts = zip(tensor.parts, pieces, strict=True)
        return [_moved(part, piece, places[path_of(part)]) for part, piece in parts]

    for _, (tensor, pieces) in zip(progress(tensors), one_ahead(read, tensors), strict=True):
        for part, (moved, back) in zip(tensor.parts, pieces, strict=True):
            path = path_of(part)
            arrays[path] = _placed(part, moved, back, places[path], arrays.get(path))
            # Until the copy is made the devices may still read from host memory.
            arrays[path].block_until_ready()
        del pieces, moved  # before the next one is awaited
    if LAM not in arrays:
        coefficients_LN = initial(model.lam, model.attention_layers, model.heads)
        arrays[LAM] = jax.device_put(coefficients_LN, places[LAM].sharding)
    nested = flax.traverse_util.unflatten_dict(arrays)
    return {'params': nested['params'], 'lam': {'head': nested['lam']}}


def _moved(
    part: Parameter, piece: np.ndarray, target: jax.ShapeDtypeStruct
) -> tuple[jax.Array, tuple[int, ...]]:
    """The piece on the devices, in the dtype of the file, and the axes that turn it around."""
    sharding = target.sharding
    assert isinstance(sharding, NamedSharding)
    # Accelerators get a piece in the order of its bytes, copied by rows, and turn it around. A CPU
    # gets it in the order of the parameter, since its own transposition is slow.
    stored = tuple(range(piece.ndim))
    if sharding.mesh.devices.flat[0].platform != 'cpu':
        stored = tuple(np.argsort([-stride for stride in piece.strides], kind='stable').tolist())
    back = tuple(stored.index(axis) for axis in range(piece.ndim))
    axes = (*sharding.spec, *(None,) * (len(target.shape) - len(sharding.spec)))
    own = axes if part.layer is None else axes[1:]
    spec = PartitionSpec(*(own[axis] for axis in stored))
    return _on_devices(piece.transpose(stored), NamedSharding(sharding.mesh, spec)), back


def _placed(
    part: Parameter,
    moved: jax.Array,
    back: tuple[int, ...],
    target: jax.ShapeDtypeStruct,
    so_far: jax.Array | None,
) -> jax.Array:
    """The parameter with what was moved in it: the whole of it, or its layer."""
    sharding = target.sharding
    assert isinstance(sharding, NamedSharding)
    if part.layer is None:
        return _converted(moved, back, sharding)
    if so_far is None:
        so_far = jnp.zeros(target.shape, jnp.float32, device=sharding)
    return _inserted(so_far, moved, part.layer, back, sharding)


def _on_devices(piece: np.ndarray, sharding: NamedSharding) -> jax.Array:
    """Every device's share of the piece, in the piece's dtype. The copy keeps no view of it."""
    shares: dict[tuple, np.ndarray] = {}  # devices that have the same one share the copy

    def share(index: Any) -> np.ndarray:
        key = tuple((part.start, part.stop) for part in index)
        if key not in shares:
            shares[key] = copied(piece[index])
        return shares[key]

    return jax.make_array_from_callback(piece.shape, sharding, share)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _converted(piece: jax.Array, axes: tuple[int, ...], sharding: NamedSharding) -> jax.Array:
    whole = piece.transpose(axes).astype(jnp.float32)
    return jax.lax.with_sharding_constraint(whole, sharding)


@functools.partial(jax.jit, static_argnums=(3, 4), donate_argnums=0)
def _inserted(
    stacked: jax.Array,
    piece: jax.Array,
    layer: int | jax.Array,
    axes: tuple[int, ...],
    sharding: NamedSharding,
) -> jax.Array:
    """`stacked` [L, ...] with `piece` as its layer, in place."""
    whole = piece.transpose(axes).astype(jnp.float32)
    updated = jax.lax.dynamic_update_index_in_dim(stacked, whole, layer, 0)
    return jax.lax.with_sharding_constraint(updated, sharding)
