"""Templates for the families' lists of tensors.

A `LayerTensor` is a tensor that every layer has one of; `stacked` makes the tensors of all layers,
`apart` those of layers that have arrays of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nope.interop.mapping import (
    SAME,
    TRANSPOSED,
    Layout,
    Parameter,
    Tensor,
    fused,
    part_vectors,
    parts_in,
    parts_out,
)
from nope.interop.mapping import matrix as outer_matrix
from nope.interop.mapping import vector as outer_vector
from nope.model import ModelConfig


class LayerTensor(NamedTuple):
    """A tensor of a layer: its name after the layer's, its shape, the paths of its parts."""

    name: str
    shape: tuple[int, ...]
    paths: tuple[tuple[str, ...], ...]
    layout: Layout


def stacked(prefix: str, templates: Sequence[LayerTensor], layers: int) -> list[Tensor]:
    """The tensors of all layers; layer N's names begin with `prefix` and 'N.'."""
    return _of_layers(prefix, lambda layer: templates, layers, Parameter)


def apart(
    prefix: str, templates_of: Callable[[int], Sequence[LayerTensor]], layers: int
) -> list[Tensor]:
    """As `stacked`, of a model whose layers are apart; each has templates of its own."""

    def part(path: tuple[str, ...], layer: int) -> Parameter:
        first, *rest = path
        own = first == 'layers'
        return Parameter((first, str(layer), *rest)) if own else Parameter(path, layer)

    return _of_layers(prefix, templates_of, layers, part)


def _of_layers(
    prefix: str,
    templates_of: Callable[[int], Sequence[LayerTensor]],
    layers: int,
    part: Callable[[tuple[str, ...], int], Parameter],
) -> list[Tensor]:
    return [
        Tensor(
            f'{prefix}{layer}.{template.name}',
            template.shape,
            tuple(part(path, layer) for path in template.paths),
            template.layout,
        )
        for layer in range(layers)
        for template in templates_of(layer)
    ]


def matrix(name: str, path: Sequence[str], out: int, inputs: int) -> LayerTensor:
    """A plain projection: [out, in] there. path: below 'layers'."""
    return LayerTensor(name, (out, inputs), (('layers', *path),), TRANSPOSED)


def vector(name: str, path: Sequence[str], size: int) -> LayerTensor:
    return LayerTensor(name, (size,), (('layers', *path),), SAME)


def heads_weight(name: str, ours: str, config: ModelConfig, heads: int) -> LayerTensor:
    """The projection to queries, keys or values, [heads * H, D] there."""
    shape = heads * config.head_dim, config.width
    layout = parts_out(config.width, heads, config.head_dim)
    return LayerTensor(name, shape, (('layers', 'attention', ours),), layout)


def heads_bias(name: str, ours: str, config: ModelConfig, heads: int) -> LayerTensor:
    path, layout = ('layers', 'attention', f'{ours}_bias'), part_vectors(heads, config.head_dim)
    return LayerTensor(name, (heads * config.head_dim,), (path,), layout)


def output_weight(name: str, config: ModelConfig) -> LayerTensor:
    """Attention's output projection, [D, N * H] there."""
    shape = config.width, config.heads * config.head_dim
    layout = parts_in(config.width, config.heads, config.head_dim)
    return LayerTensor(name, shape, (('layers', 'attention', 'output'),), layout)


def norm(name: str, ours: str, config: ModelConfig) -> list[LayerTensor]:
    """A norm before a part of the layer, with its bias if it has one."""
    found = [vector(f'{name}.weight', (ours, 'scale'), config.width)]
    if config.norm_bias:
        found.append(vector(f'{name}.bias', (ours, 'bias'), config.width))
    return found


def qk_norm(ours: str, config: ModelConfig, heads: int) -> LayerTensor:
    """The norm of queries or keys, [H] there, or [heads * H] of all heads together."""
    name, path = f'self_attn.{ours[0]}_norm.weight', ('attention', f'{ours}_norm', 'scale')
    if config.qk_norm_over == 'head':
        return vector(name, path, config.head_dim)
    layout = part_vectors(heads, config.head_dim)
    return LayerTensor(name, (heads * config.head_dim,), (('layers', *path),), layout)


def fused_qkv(name: str, config: ModelConfig, rows: Sequence[np.ndarray]) -> list[LayerTensor]:
    """One projection to queries, keys and values, and its bias if it has one. rows: the indices
    of each of the three, head by head."""
    ours = ('query', 'key', 'value')
    heads = config.heads, config.kv_heads, config.kv_heads
    out = sum(len(indices) for indices in rows)
    paths = tuple(('layers', 'attention', part) for part in ours)
    layout = fused([parts_out(config.width, count, config.head_dim) for count in heads], rows)
    found = [LayerTensor(f'{name}.weight', (out, config.width), paths, layout)]
    if config.qkv_bias:
        paths = tuple(('layers', 'attention', f'{part}_bias') for part in ours)
        layout = fused([part_vectors(count, config.head_dim) for count in heads], rows)
        found.append(LayerTensor(f'{name}.bias', (out,), paths, layout))
    return found


def embedding(name: str, config: ModelConfig) -> Tensor:
    return Tensor(name, (config.vocab_size, config.width), (Parameter(('embedding',)),), SAME)


def outer_norm(name: str, ours: str, config: ModelConfig) -> list[Tensor]:
    """A norm outside the layers, with its bias if it has one."""
    found = [outer_vector(f'{name}.weight', (ours, 'scale'), None, config.width)]
    if config.norm_bias:
        found.append(outer_vector(f'{name}.bias', (ours, 'bias'), None, config.width))
    return found


def head(config: ModelConfig) -> list[Tensor]:
    """The head, unless it is the embedding."""
    V, D = config.vocab_size, config.width
    return [] if config.tied_head else [outer_matrix('lm_head.weight', ('head',), None, V, D)]
