"""MptForCausalLM: ALiBi, LayerNorm, no biases anywhere.

    transformer.wte.weight
    transformer.blocks.N.norm_1.weight
    transformer.blocks.N.attn.Wqkv.weight
    transformer.blocks.N.attn.out_proj.weight
    transformer.blocks.N.norm_2.weight
    transformer.blocks.N.ffn.{up,down}_proj.weight
    transformer.norm_f.weight
    lm_head.weight                                      unless the head is the embedding

The rows of the fused projection are all queries, then all keys, then all values. What stock
`transformers` computes is the measure: much that a config can say it never looks at, and where
that would be another model than the authors' own code makes of it, the config is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nope.interop.families import common, uniform
from nope.interop.families.base import Described
from nope.interop.families.templates import (
    embedding,
    fused_qkv,
    head,
    matrix,
    norm,
    outer_norm,
    output_weight,
    stacked,
)
from nope.interop.fields import MAX_LENGTH, Fields
from nope.interop.mapping import Tensor
from nope.model import ModelConfig
from nope.positions import Alibi

_FIXED: Mapping[str, Any] = {
    **common.PLAIN,
    'norm': 'layer',
    'norm_bias': False,
    'embedding_norm': False,
    'qk_norm': False,
    'qkv_bias': False,
    'output_bias': False,
    'mlp_bias': False,
    'mlp': 'plain',
    'activation': 'gelu',
}
_UNSEEN = 'MptForCausalLM never looks at it'

# Keys, and the values of them that stock `transformers` and the authors' code agree on.
_OPTIONS: Mapping[str, tuple[Any, ...]] = {
    'expansion_ratio': (4,),
    'no_bias': (True,),
    'logit_scale': (),
    'norm_type': ('low_precision_layernorm', 'layernorm'),
}
_ATTENTION_OPTIONS: Mapping[str, tuple[Any, ...]] = {
    'alibi': (True,),
    'alibi_bias_max': (8,),
    'attn_type': ('multihead_attention',),
    'attn_uses_sequence_id': (False,),
    'attn_logit_softcapping': (),
    'prefix_lm': (False,),
    'qk_gn': (False,),
    'qk_ln': (False,),
    'rope': (False,),
    'sliding_window_size': (-1,),
}


class Mpt(uniform.Uniform):
    """A `nope.interop.families.base.Family`."""

    name = 'mpt'
    architecture = 'MptForCausalLM'
    fixed = _FIXED

    def read_config(self, config: Mapping[str, Any], names: frozenset[str]) -> Described:
        fields = Fields(config)
        common.check_plain(fields)
        for key, accepted in _OPTIONS.items():
            fields.only(key, *accepted, why=_UNSEEN)
        fields.section('ffn_config').only('ffn_type', 'mptmlp', why=_UNSEEN)
        shape = uniform.read_shape(
            fields,
            width=fields.agreed('d_model', 'hidden_size'),
            heads=fields.agreed('n_heads', 'num_attention_heads'),
            layers=fields.agreed('n_layers', 'num_hidden_layers'),
        )
        values = {
            **_FIXED,
            **shape,
            'position': Alibi(),
            'softmax_scale': _read_attention(fields.section('attn_config'), shape['heads']),
            'norm_epsilon': fields.number('layer_norm_epsilon', 1e-5, most=1.0, zero=True),
            'tied_head': fields.flag('tie_word_embeddings', True),
        }
        train_length = fields.optional_integer('max_seq_len', MAX_LENGTH)
        return common.described(fields, common.made(fields, values), train_length)

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        D, F = config.width, config.mlp_width
        prefix = '' if 'wte.weight' in names else 'transformer.'
        layers = [
            *norm('norm_1', 'attention_norm', config),
            *fused_qkv('attn.Wqkv', config, list(np.arange(3 * D).reshape(3, D))),
            output_weight('attn.out_proj.weight', config),
            *norm('norm_2', 'mlp_norm', config),
            matrix('ffn.up_proj.weight', ('mlp', 'up'), F, D),
            matrix('ffn.down_proj.weight', ('mlp', 'down'), D, F),
        ]
        return [
            embedding(f'{prefix}wte.weight', config),
            *stacked(f'{prefix}blocks.', layers, config.layers),
            *outer_norm(f'{prefix}norm_f', 'final_norm', config),
            *head(config),
        ]

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        length = described.longest
        return {
            **common.head(self.architecture, self.name),
            'vocab_size': config.vocab_size,
            'd_model': config.width,
            'n_layers': config.layers,
            'n_heads': config.heads,
            'expansion_ratio': 4,
            'layer_norm_epsilon': config.norm_epsilon,
            'no_bias': True,
            'learned_pos_emb': False,
            'attn_config': {
                'alibi': True,
                'alibi_bias_max': 8,
                'softmax_scale': config.softmax_scale,
            },
            'tie_word_embeddings': config.tied_head,
            **({} if length is None else {'max_seq_len': length}),
            **common.facts(described),
        }


def _read_attention(fields: Fields, heads: int) -> float | None:
    """Checks `attn_config`; its `softmax_scale`, None for none."""
    for key, accepted in _ATTENTION_OPTIONS.items():
        fields.only(key, *accepted, why=_UNSEEN)
    fields.only('kv_n_heads', heads, why=_UNSEEN)
    fields.only('clip_qkv', 0, why='queries, keys and values are not clipped here')
    return fields.optional_number('softmax_scale')


MPT = Mpt()
