"""MptForCausalLM: ALiBi, LayerNorm, no biases anywhere.

    transformer.wte.weight
    transformer.blocks.N.norm_1.weight
    transformer.blocks.N.attn.Wqkv.weight
    transformer.blocks.N.attn.out_proj.weight
    transformer.blocks.N.norm_2.weight
    transformer.blocks.N.ffn.{up,down}_proj.weight
    transformer.norm_f.weight
    lm_head.weight                                      unless the head is the embedding

The rows of the fused projection are all queries, then all keys, then all values. The measure is
what stock `transformers` computes. It never looks at much that a config can say. A config is
refused if the authors' own code would make another model of it.
"""

from __future__ import annotations

from collections.abc import Mapping
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
)
from nope.interop.fields import Fields
from nope.interop.mapping import Tensor
from nope.model import ModelConfig

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
    width = ('d_model', 'hidden_size')
    heads = ('n_heads', 'num_attention_heads')
    layers = ('n_layers', 'num_hidden_layers')
    length = 'max_seq_len'

    def _read_own(self, fields: Fields, values: Mapping[str, Any]) -> dict[str, Any]:
        for key, accepted in _OPTIONS.items():
            fields.only(key, *accepted, why=_UNSEEN)
        fields.section('ffn_config').only('ffn_type', 'mptmlp', why=_UNSEEN)
        attention = fields.section('attn_config')
        for key, accepted in _ATTENTION_OPTIONS.items():
            attention.only(key, *accepted, why=_UNSEEN)
        attention.only('kv_n_heads', values['heads'], why=_UNSEEN)
        attention.only('clip_qkv', 0, why='queries, keys and values are not clipped here')
        return {'softmax_scale': attention.optional_number('softmax_scale')}

    def _write_own(self, config: ModelConfig) -> dict[str, Any]:
        alibi = {'alibi': True, 'alibi_bias_max': 8, 'softmax_scale': config.softmax_scale}
        options = {'expansion_ratio': 4, 'no_bias': True, 'learned_pos_emb': False}
        return {**options, 'attn_config': alibi}

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


MPT = Mpt()
