"""Export to a Hugging Face directory that stock `transformers` loads."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from nope.interop import safetensors
from nope.interop.directory import EXPORT, INDEX, SINGLE
from nope.interop.families import writer_of
from nope.interop.families.base import Described
from nope.interop.fold import fold
from nope.interop.mapping import LAM, Tensor
from nope.interop.row_major import row_major
from nope.interop.tokenizer_files import keep_as_it_is, raise_length, write_tokenizer
from nope.model import ModelConfig
from nope.runtime import files
from nope.runtime.files import write_json
from nope.variables import Variables, lam_is_neutral, lam_of

LAM_WAYS = ('fold', 'scale_param', 'none')
DTYPES: Mapping[str, np.dtype] = {
    'float32': np.dtype(np.float32),
    'bfloat16': np.dtype(ml_dtypes.bfloat16),
    'float16': np.dtype(np.float16),
}
SHARD_BYTES = 5 << 30


@dataclasses.dataclass(frozen=True)
class Export:
    """Options of an export.

    lam: 'fold', inside the query weights; 'scale_param', as tensors of that name, which stock
        `transformers` does not know; 'none', left out.
    length: the length of sequences that lambda is for; needed where its law follows it.
    dtype: of the tensors. Folding rounds the products to it.
    shard_bytes: the most that one file holds (one tensor always goes whole).
    """

    lam: str = 'fold'
    length: int | None = None
    dtype: str = 'float32'
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        if self.lam not in LAM_WAYS:
            raise ValueError(f'export.lam is {self.lam!r}; accepted: {", ".join(LAM_WAYS)}')
        if self.dtype not in DTYPES:
            raise ValueError(f'export.dtype is {self.dtype!r}; accepted: {", ".join(DTYPES)}')
        if self.length is not None and self.length < 1:
            raise ValueError(f'export.length is {self.length}; it must be at least 1')
        if self.shard_bytes < 1:
            raise ValueError(f'export.shard_bytes is {self.shard_bytes}; it must be at least 1')


def check_export(model: ModelConfig, export: Export) -> None:
    """Raises ValueError where a model cannot be written so; nothing is computed."""
    _tensors(model, export.lam)
    if export.lam != 'none':
        model.lam.check_foldable(export.length)


def save(
    path: pathlib.Path,
    variables: Variables,
    described: Described,
    *,
    export: Export = Export(),
    tokenizer: str | None = None,
    origin: Mapping[str, Any] | None = None,
) -> None:
    """Writes the directory `path`, which is whole or absent; it must not exist, or be empty. What
    killed calls left beside it on a Linux disk is removed.

    described: the model and its facts. tokenizer: 'bytes', a directory or a tokenizer file to
    carry over; None for no tokenizer. origin: JSON-able facts on where the model is from.
    Tensors leave the devices one at a time, all of them to this process. ValueError as
    `check_export`, where QK-norm meets a lambda that is not neutral, and where the dtype makes 0 or
    infinite what is neither.
    """
    path = pathlib.Path(os.path.realpath(path))
    check_export(described.model, export)
    if jax.process_count() > 1:
        raise ValueError(
            f'{jax.process_count()} processes hold the model together; nope export, run on '
            'one machine, writes it from the run folder'
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(f'{path} is there already and not an empty folder; nothing was written')
    with files.unfinished_folder(path) as partial:
        _write(partial, variables, described, export, tokenizer, origin or {})
        if path.is_dir():
            path.rmdir()
        partial.rename(path)


def _write(
    folder: pathlib.Path,
    variables: Variables,
    described: Described,
    export: Export,
    tokenizer: str | None,
    origin: Mapping[str, Any],
) -> None:
    model, given = described.model, variables
    scaled: Any = None
    if export.lam == 'scale_param':
        multipliers_LN = model.multipliers(lam_of(variables), export.length or 1)
        scaled = np.asarray(jax.device_get(multipliers_LN))
    elif export.lam == 'fold' and not lam_is_neutral(model, variables, export.length):
        model, variables = fold(model, variables, export.length)
    tensors = {tensor.name: tensor for tensor in _tensors(model, export.lam)}
    # As they were given: that a product with lambda is rounded to 0 is rounding.
    leaves, dtype = flax.traverse_util.flatten_dict(given['params']), DTYPES[export.dtype]
    for name, tensor in tensors.items():
        parts = [part for part in tensor.parts if part.path != LAM]
        if lost := sum(int(_lost(leaves[part.path], part.layer, dtype)) for part in parts):
            raise ValueError(
                f'export.dtype is {export.dtype!r}, which makes {lost} values of tensor '
                f"{safetensors.shown(name)} 0 or infinite; accepted: 'float32', which holds them"
            )
    leaves = flax.traverse_util.flatten_dict(variables['params'])
    planned = {
        name: (DTYPES['float32'] if _is_lam(tensor) else dtype, tensor.shape)
        for name, tensor in tensors.items()
    }

    def array(name: str) -> np.ndarray:
        parts = [
            # Rounded before it is moved.
            scaled[part.layer]
            if part.path == LAM
            else np.asarray(_rounded(leaves[part.path], part.layer, dtype))
            for part in tensors[name].parts
        ]
        whole = row_major(tensors[name].layout.join(parts)).astype(planned[name][0], copy=False)
        safetensors.check_finite(name, whole, folder)  # products may be beyond the dtype
        return whole

    longer = 0 if export.lam == 'none' else export.length or 0
    context = max(longer, described.longest or 0, described.train_length or 0) or None
    facts = described._replace(model=model, longest=context, dtype=export.dtype)
    config = writer_of(model).write_config(model, facts)
    write_json(folder / 'config.json', config)
    if tokenizer is not None:  # before hours of tensors, as it may be refused
        write_tokenizer(tokenizer, folder)
        keep_as_it_is(tokenizer, folder, config['model_type'])
        raise_length(folder, context)
    checksums = _write_shards(folder, planned, array, export.shard_bytes)
    write_json(
        folder / EXPORT,
        {
            'checksums': checksums,
            'lam': export.lam,
            'length': export.length,
            'train_length': described.train_length,
            'dtype': export.dtype,
            'origin': dict(origin),
        },
    )


def _tensors(model: ModelConfig, lam: str) -> list[Tensor]:
    """Tensors that its family writes of a model; ValueError where it cannot write lambda so."""
    # A family writes a lambda where it is told of a file that has one.
    told = frozenset({'model.layers.0.self_attn.scale_param'} if lam == 'scale_param' else ())
    tensors = writer_of(model).tensors(model, told)
    if told and not any(_is_lam(tensor) for tensor in tensors):
        raise ValueError(
            "lam='scale_param' is a tensor of Llama-shaped checkpoints "
            "(model.layers.N.self_attn.scale_param); export this model with lam='fold'"
        )
    return tensors


def _is_lam(tensor: Tensor) -> bool:
    return tensor.parts[0].path == LAM


@functools.partial(jax.jit, static_argnums=2)
def _rounded(leaf: jax.Array, layer: int | None, dtype: np.dtype) -> jax.Array:
    """A parameter, or its layer, in the dtype of the file."""
    return (leaf if layer is None else leaf[layer]).astype(dtype)


@functools.partial(jax.jit, static_argnums=2)
def _lost(leaf: jax.Array, layer: int | None, dtype: np.dtype) -> jax.Array:
    """The number of values of a parameter, or its layer, that are 0 or infinite in the dtype
    alone. Subnormal numbers of float32 are 0 to some devices as they are."""
    values = leaf if layer is None else leaf[layer]
    rounded = values.astype(dtype)
    becomes_zero = (rounded == 0) & (values != 0)
    becomes_infinite = jnp.isinf(rounded) & ~jnp.isinf(values)
    return jnp.count_nonzero(becomes_zero | becomes_infinite)


def _write_shards(
    folder: pathlib.Path,
    planned: Mapping[str, tuple[np.dtype, tuple[int, ...]]],
    array: Callable[[str], np.ndarray],
    shard_bytes: int,
) -> dict[str, str]:
    """Files of at most `shard_bytes`, and an index where there are several; the checksums."""
    sizes = {name: dtype.itemsize * math.prod(shape) for name, (dtype, shape) in planned.items()}
    shards: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes.items():
        if shards[-1] and filled + size > shard_bytes:
            shards.append([])
            filled = 0
        shards[-1].append(name)
        filled += size
    files = [SINGLE]
    if len(shards) > 1:
        count = len(shards)
        files = [f'model-{i:05d}-of-{count:05d}.safetensors' for i in range(1, count + 1)]
    checksums: dict[str, str] = {}
    for file, names in zip(files, shards, strict=True):
        shapes = {name: planned[name] for name in names}
        checksums |= safetensors.write(folder / file, shapes, array, {'format': 'pt'})
    if len(shards) > 1:
        weight_map = {n: file for file, names in zip(files, shards, strict=True) for n in names}
        total = {'total_size': sum(sizes.values())}
        write_json(folder / INDEX, {'metadata': total, 'weight_map': weight_map})
    return checksums
