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
from typing import Any

import numpy as np

from nope.interop.families import common, uniform
from nope.interop.families.base import Described
from nope.interop.families.templates import (
    Template,
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
from nope.interop.fields import MAX_LENGTH, MAX_WIDTH, Fields
from nope.interop.mapping import Tensor
from nope.model import ModelConfig
from nope.positions import Alibi

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


class Bloom(uniform.Uniform):
    """A `nope.interop.families.base.Family`."""

    name = 'bloom'
    architecture = 'BloomForCausalLM'
    fixed = _FIXED

    def read_config(self, config: Mapping[str, Any], names: frozenset[str]) -> Described:
        fields = Fields(config)
        common.check_plain(fields)
        fields.only(
            'apply_residual_connection_post_layernorm',
            False,
            why='the residual stream is never normalised here',
        )
        if fields.integer('pretraining_tp', MAX_WIDTH, default=1) > 1:
            fields.only('slow_but_exact', False, why='stock leaves out biases otherwise')
        shape = uniform.read_shape(
            fields,
            width=fields.agreed('hidden_size', 'n_embed'),
            heads=fields.agreed('n_head', 'num_attention_heads'),
            layers=fields.agreed('n_layer', 'num_hidden_layers'),
        )
        fields.only('n_inner', shape['mlp_width'], why='the MLP is 4 times as wide as the model')
        values = {
            **_FIXED,
            **shape,
            'position': Alibi(),
            'norm_epsilon': fields.number('layer_norm_epsilon', 1e-5, most=1.0, zero=True),
            'tied_head': fields.flag('tie_word_embeddings', True),
        }
        train_length = fields.optional_integer('seq_length', MAX_LENGTH)
        return common.described(fields, common.made(fields, values), train_length)

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        prefix = '' if _EMBEDDING in names else 'transformer.'
        layers = [
            *norm('input_layernorm', 'attention_norm', config),
            *_attention(config),
            *norm('post_attention_layernorm', 'mlp_norm', config),
            *_mlp(config),
        ]
        return [
            embedding(prefix + _EMBEDDING, config),
            *outer_norm(f'{prefix}word_embeddings_layernorm', 'embedding_norm', config),
            *stacked(f'{prefix}h.', layers, config.layers),
            *outer_norm(f'{prefix}ln_f', 'final_norm', config),
            *head(config),
        ]

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        length = described.longest
        return {
            **common.head(self.architecture, self.name),
            'vocab_size': config.vocab_size,
            'hidden_size': config.width,
            'n_layer': config.layers,
            'n_head': config.heads,
            'layer_norm_epsilon': config.norm_epsilon,
            'apply_residual_connection_post_layernorm': False,
            'tie_word_embeddings': config.tied_head,
            **({} if length is None else {'seq_length': length}),
            **common.facts(described),
        }


def _attention(config: ModelConfig) -> list[Template]:
    rows_NCH = np.arange(3 * config.width).reshape(config.heads, 3, config.head_dim)
    rows = [rows_NCH[:, part].reshape(-1) for part in range(3)]
    return [
        *fused_qkv('self_attention.query_key_value', config, rows),
        output_weight('self_attention.dense.weight', config),
        vector('self_attention.dense.bias', ('attention', 'output_bias'), config.width),
    ]


def _mlp(config: ModelConfig) -> list[Template]:
    D, F = config.width, config.mlp_width
    return [
        matrix('mlp.dense_h_to_4h.weight', ('mlp', 'up'), F, D),
        vector('mlp.dense_h_to_4h.bias', ('mlp', 'up_bias'), F),
        matrix('mlp.dense_4h_to_h.weight', ('mlp', 'down'), D, F),
        vector('mlp.dense_4h_to_h.bias', ('mlp', 'down_bias'), D),
    ]


BLOOM = Bloom()
