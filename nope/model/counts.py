"""Parameters of a model, and floating-point operations of its training, by arithmetic."""

from __future__ import annotations

import math

from nope.model.config import ModelConfig


def parameters(model: ModelConfig) -> int:
    """Number of trained parameters (lambda not among them)."""
    vectors = model.head_dim * (model.heads + 2 * model.kv_heads) * model.qkv_bias
    normed = 2 if model.qk_norm_over == 'head' else model.heads + model.kv_heads
    vectors += model.width * model.output_bias + normed * model.head_dim * model.qk_norm
    inner = model.mlp_width * (2 if model.mlp == 'gated' else 1)
    vectors += (inner + model.width) * model.mlp_bias
    vectors += model.heads * model.sinks
    vectors += 2 * model.heads * (model.temperature == 'adaptive')
    vectors += 0 if model.gate is None else model.gate.heads * (model.width + 1)
    norm = model.width * (1 + model.norm_bias) * (model.norm != 'none')
    table = 0 if model.table is None else math.prod(model.table.shape)
    embeddings = model.vocab_size * model.width * (1 if model.tied_head else 2)
    norms = {'pre': 2, 'parallel': 1, 'post': 2, 'both': 4}[model.block] * norm
    layers = model.layers * (_layer_weights(model) + vectors + norms)
    return layers + embeddings + norm * (1 + model.embedding_norm) + table


def training_flops(model: ModelConfig, length: int) -> float:
    """FLOPs of a training step per token of a sequence of `length`: 6 per weight in a matrix
    product, and the causal half of attention's two products, forward and backward (windows not
    counted)."""
    weights = model.layers * _layer_weights(model) + model.vocab_size * model.width
    attended = model.layers * (2 if model.temperature == 'entropy' else 1)
    return 6.0 * weights + 6.0 * attended * length * model.heads * model.head_dim


def _layer_weights(model: ModelConfig) -> int:
    """Weights in the matrix products of a layer."""
    attention = model.width * model.head_dim * 2 * (model.heads + model.kv_heads)
    gates = {'none': 0, 'head': model.heads, 'element': model.heads * model.head_dim}
    attention += model.width * gates[model.output_gate]
    attention += model.width * 2 * model.heads * (model.temperature == 'adaptive')
    return attention + (3 if model.mlp == 'gated' else 2) * model.width * model.mlp_width
