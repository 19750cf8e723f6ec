"""Parameters of a model, and floating-point operations of its training, by arithmetic."""

from __future__ import annotations

import math

from nope.model.config import ModelConfig
from nope.model.kinds import LayerKind
from nope.model.mixers import Attention


def parameters(model: ModelConfig) -> int:
    """Number of trained parameters (lambda not among them)."""
    norm = model.width * (1 + model.norm_bias) * (model.norm != 'none')
    table = 0 if model.table is None else math.prod(model.table.shape)
    embeddings = model.vocab_size * model.width * (1 if model.tied_head else 2)
    layers = 0
    for layer in range(model.layers):
        own, mixer = model.of_layer(layer), model.layer_kinds[layer].mixer
        layers += _layer_weights(model, layer) + _of_mlp_and_norms(model, layer)
        if not isinstance(mixer, Attention):
            layers += 0 if mixer is None else mixer.vectors(model.width)
            continue
        keys, values = _projections(model, layer)
        layers += own.head_dim * (model.heads + keys + values) * model.qkv_bias
        normed = 1 + (keys > 0) if model.qk_norm_over == 'head' else model.heads + keys
        layers += model.width * model.output_bias
        layers += normed * own.head_dim * (model.qk_norm and model.qk_norm_weights)
        layers += model.heads * model.sinks
        layers += 2 * model.heads * (model.temperature == 'adaptive')
        layers += 0 if model.gate is None else model.gate.heads * (model.width + 1)
    inputs = 0
    if model.token_width is not None:
        inputs = model.vocab_size * model.layers * model.token_width + model.token_width
        inputs += model.width * model.layers * model.token_width
    return layers + embeddings + norm * (1 + model.embedding_norm) + table + inputs


def training_flops(model: ModelConfig, length: int, *, frozen: bool = False) -> float:
    """FLOPs of a training step per token of a sequence of `length`.

    A weight in a matrix product counts 6. Attention counts its two products, forward and backward,
    with the keys that a query sees: on average half of them under a causal mask. frozen: a search
    of lambda, whose weights have no gradients and count 4.
    """
    weights: float = model.vocab_size * model.width
    weights += model.width * model.layers * (model.token_width or 0)
    attended = 0.0
    for layer in range(model.layers):
        weights += _layer_weights(model, layer)
        kind = model.layer_kinds[layer]
        if isinstance(kind.mixer, Attention):
            attended += model.of_layer(layer).head_dim * _attended(kind, model.heads, length)
        elif kind.mixer is not None:
            weights += kind.mixer.products()
    attended *= 2 if model.temperature == 'entropy' else 1
    seen = 6.0 if model.causal else 12.0
    return (4.0 if frozen else 6.0) * weights + seen * attended


def _attended(kind: LayerKind, heads: int, length: int) -> float:
    """Twice the mean number of keys that a query sees under a causal mask, of all heads."""
    window = min(kind.window or length, length)
    near = min(kind.position.local_window or window, window)
    local = kind.position.local_heads(heads) if near < window else 0
    if kind.chunk is not None:
        return float(heads * min(kind.chunk, length))
    # W keys, but for the first W queries, which see half as many on average.
    wide, narrow = ((2 - w / max(length, 1)) * w for w in (window, near))
    return local * narrow + (heads - local) * wide


def _projections(model: ModelConfig, layer: int) -> tuple[int, int]:
    """Heads of keys and heads of values that a layer projects to."""
    kind, kv_heads = model.layer_kinds[layer], model.of_layer(layer).kv_heads
    if kind.keys_from == 'earlier':
        return 0, 0
    return kv_heads, kv_heads if kind.values_from == 'input' else 0


def _of_mlp_and_norms(model: ModelConfig, layer: int) -> int:
    """Parameters of a layer besides its mixer's and those in matrix products."""
    own, kind = model.of_layer(layer), model.layer_kinds[layer]
    inner = own.mlp_width * (2 if model.mlp == 'gated' else 1)
    parts = (kind.mixer is not None) + kind.mlp
    norms = 1 if model.block == 'parallel' else parts * (2 if model.block == 'both' else 1)
    norm = model.width * (1 + model.norm_bias) * (model.norm != 'none')
    of_tokens = model.layer_scale + model.width * (model.token_width is not None)
    return (inner + model.width) * model.mlp_bias * kind.mlp + norms * norm + of_tokens


def _layer_weights(model: ModelConfig, layer: int) -> int:
    """Weights in the matrix products of a layer."""
    own, kind = model.of_layer(layer), model.layer_kinds[layer]
    mlp = (3 if model.mlp == 'gated' else 2) * model.width * own.mlp_width * kind.mlp
    mlp += 2 * model.width * (model.token_width or 0)
    if not isinstance(kind.mixer, Attention):
        return mlp + (0 if kind.mixer is None else kind.mixer.weights(model.width))
    attention = model.width * own.head_dim * (2 * model.heads + sum(_projections(model, layer)))
    gates = {'none': 0, 'head': model.heads, 'element': model.heads * own.head_dim}
    attention += model.width * gates[model.output_gate]
    attention += model.width * 2 * model.heads * (model.temperature == 'adaptive')
    return attention + mlp
