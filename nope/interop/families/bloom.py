"""BloomForCausalLM: ALiBi, LayerNorm with biases, one also after the embeddings.

    [transformer.]word_embeddings.weight
    [transformer.]word_embeddings_layernorm.{weight,bias}
    [transformer.]h.N.input_layernorm.{weight,bias}
    [transformer.]h.N.self_attention.query_key_value.{weight,bias}
    [transformer.]h.N.self_attention.dense.{weight,bias}
    [transformer.]h.N.post_attention_layernorm.{weight,bias}
    [transformer.]h.N.mlp.dense_{h_to_4h,4h_to_h}.{weight,bias}
    [transformer.]ln_f.{weight,bias}
    lm_head.weight                                      unless the head is the embedding

The rows of the fused projection go by head: its queries, its keys, its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from nope.interop.families import common, uniform
from nope.interop.families.templates import (
    embedding,
    fused_qkv,
    head,
    matrix,
    norm,
    outer_norm,
    output_weight,
    stacked,
    vector,
)
from nope.interop.fields import MAX_WIDTH, Fields
from nope.interop.mapping import Tensor
from nope.model import ModelConfig

_FIXED: Mapping[str, Any] = {
    **common.PLAIN,
    'softmax_scale': None,
    'norm': 'layer',
    'norm_bias': True,
    'embedding_norm': True,
    'qk_norm': False,
    'qkv_bias': True,
    'output_bias': True,
    'mlp_bias': True,
    'mlp': 'plain',
    'activation': 'gelu_tanh',
}
_EMBEDDING = 'word_embeddings.weight'
_NORMED = 'apply_residual_connection_post_layernorm'


class Bloom(uniform.Uniform):
    """A `nope.interop.families.base.Family`."""

    name = 'bloom'
    architecture = 'BloomForCausalLM'
    fixed = _FIXED
    width = ('hidden_size', 'n_embed')
    heads = ('n_head', 'num_attention_heads')
    layers = ('n_layer', 'num_hidden_layers')
    length = 'seq_length'
    defaults: Mapping[str, int] = MappingProxyType({'bos_token_id': 1, 'eos_token_id': 2})

    def _read_own(self, fields: Fields, values: Mapping[str, Any]) -> dict[str, Any]:
        fields.only(_NORMED, False, why='the residual stream is never normalised here')
        if fields.integer('pretraining_tp', MAX_WIDTH, default=1) > 1:
            fields.only('slow_but_exact', False, why='stock leaves out biases otherwise')
        why = 'the MLP is 4 times as wide as the model'
        fields.only('n_inner', values['mlp_width'], why=why)
        return {}

    def _write_own(self, config: ModelConfig) -> dict[str, Any]:
        return {_NORMED: False}

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        prefix = '' if _EMBEDDING in names else 'transformer.'
        D, F = config.width, config.mlp_width
        rows_NCH = np.arange(3 * D).reshape(config.heads, 3, config.head_dim)
        rows = [rows_NCH[:, part].reshape(-1) for part in range(3)]
        layers = [
            *norm('input_layernorm', 'attention_norm', config),
            *fused_qkv('self_attention.query_key_value', config, rows),
            output_weight('self_attention.dense.weight', config),
            vector('self_attention.dense.bias', ('attention', 'output_bias'), D),
            *norm('post_attention_layernorm', 'mlp_norm', config),
            matrix('mlp.dense_h_to_4h.weight', ('mlp', 'up'), F, D),
            vector('mlp.dense_h_to_4h.bias', ('mlp', 'up_bias'), F),
            matrix('mlp.dense_4h_to_h.weight', ('mlp', 'down'), D, F),
            vector('mlp.dense_4h_to_h.bias', ('mlp', 'down_bias'), D),
        ]
        return [
            embedding(prefix + _EMBEDDING, config),
            *outer_norm(f'{prefix}word_embeddings_layernorm', 'embedding_norm', config),
            *stacked(f'{prefix}h.', layers, config.layers),
            *outer_norm(f'{prefix}ln_f', 'final_norm', config),
            *head(config),
        ]


BLOOM = Bloom()
