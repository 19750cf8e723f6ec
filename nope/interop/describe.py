"""Model of a directory, and the one-to-one match of its tensors with the model's parameters."""

from __future__ import annotations

import dataclasses
import functools
import logging

import flax.traverse_util
import jax

from nope.interop import safetensors
from nope.interop.directory import Directory
from nope.interop.families import family_of
from nope.interop.families.base import Described, Ignored
from nope.interop.mapping import LAM, Tensor
from nope.interop.safetensors import CheckpointFileError, shown
from nope.model import ModelConfig
from nope.positions import Position
from nope.runtime.files import read_object
from nope.runtime.saying import say
from nope.sharding import MeshConfig, make_mesh
from nope.variables import abstract_variables


def describe(
    directory: Directory, *, position: Position | None = None, limited: bool = True
) -> Described:
    """Model of an opened directory; reads no tensor.

    position: another encoding in every layer that has one: `NoPE()` for checkpoints that were
        trained without rotation, of which nothing in the files says so. limited: also in layers
        with a window or chunks.

    ValueError for a config that is not among ours. ValueError also for a tensor that is missing,
    has another shape or is unknown, and for a parameter without a tensor.
    """
    names = frozenset(directory.tensors)
    described = family_of(directory.config, names).read_config(directory.config, names)
    file = directory.path / 'generation_config.json'
    if (penalty := (read_object(file) or {}).get('repetition_penalty')) not in (None, 1):
        stock = f'repetition_penalty {shown(penalty)}, which stock applies to greedy texts too'
        say(logging.WARNING, f'{file} has {stock}; here texts are made without')
    if directory.train_length is not None:
        described = described._replace(train_length=directory.train_length)
    if position is not None:
        changed = described.model.with_position(position, limited=limited)
        described = described._replace(model=changed)
    tensors = tensors_of(directory, described.model)
    # Lambda is float32 in any file.
    entries = [directory.tensors[t.name] for t in tensors if t.parts[0].path != LAM]
    found = {safetensors.dtype_of(located.file, located.entry).name for located in entries}
    return described._replace(dtype=found.pop() if len(found) == 1 else 'float32')


def tensors_of(directory: Directory, model: ModelConfig) -> list[Tensor]:
    """Tensors that hold the model; ValueError as `describe`."""
    names = frozenset(directory.tensors)
    family = family_of(directory.config, names)
    tensors = [_as_saved(tensor, model, names) for tensor in family.tensors(model, names)]
    for tensor in tensors:
        if tensor.name not in names:
            raise CheckpointFileError(
                f'{directory.path}: tensor {shown(tensor.name)} is missing; a {family.name} '
                f'checkpoint of this config has it, {list(tensor.shape)}'
            )
        found = directory.tensors[tensor.name].entry.shape
        if found != tensor.shape:
            raise CheckpointFileError(
                f'{directory.path}: tensor {shown(tensor.name)} has shape {list(found)}; its '
                f'config asks for {list(tensor.shape)}'
            )
    ignored = family.ignored(model)
    for name in sorted(names - {tensor.name for tensor in tensors}):
        if _reason(name, ignored) is None:
            raise CheckpointFileError(
                f'{directory.path}: tensor {shown(name)} is no parameter of the model that its '
                'config describes; left out are only '
                + ('; '.join(f'{i.pattern.pattern} ({i.reason})' for i in ignored) or 'none')
            )
    held = {part.path for tensor in tensors for part in tensor.parts}
    if lacking := _parameters_of(model) - held:
        raise CheckpointFileError(
            f'{directory.path}: no tensor holds the parameter {"/".join(min(lacking))}'
        )
    return tensors


def ignored_tensors(directory: Directory, model: ModelConfig) -> dict[str, str]:
    """Names of the directory's unread tensors, each with the reason."""
    names = frozenset(directory.tensors)
    family = family_of(directory.config, names)
    used = {tensor.name for tensor in family.tensors(model, names)}
    reasons = ((name, _reason(name, family.ignored(model))) for name in sorted(names - used))
    return {name: reason for name, reason in reasons if reason is not None}


def _as_saved(tensor: Tensor, model: ModelConfig, names: frozenset[str]) -> Tensor:
    """The tensor by its name in the files: a tied embedding may have that of the head alone."""
    if model.tied_head and tensor.parts[0].path == ('embedding',) and tensor.name not in names:
        heads = [name for name in names if name.endswith('lm_head.weight')]
        if len(heads) == 1:
            return dataclasses.replace(tensor, name=heads[0])
    return tensor


def _reason(name: str, ignored: tuple[Ignored, ...]) -> str | None:
    return next((rule.reason for rule in ignored if rule.pattern.fullmatch(name)), None)


@functools.lru_cache(maxsize=16)
def _parameters_of(model: ModelConfig) -> frozenset[tuple[str, ...]]:
    """Path under 'params' of every parameter, which is the same on every mesh."""
    abstract = abstract_variables(model, make_mesh(MeshConfig(), jax.devices()[:1]))
    return frozenset(flax.traverse_util.flatten_dict(abstract['params']))
