"""Checkpoints of TinyLlama's training code, a lit-gpt with xformers' SwiGLU. Read only.

    transformer.wte.weight
    transformer.h.N.norm_1.weight
    transformer.h.N.attn.attn.weight          queries, keys and values
    transformer.h.N.attn.proj.weight
    transformer.h.N.norm_2.weight
    transformer.h.N.mlp.swiglu.{w1,w2,w3}.weight
    transformer.ln_f.weight
    lm_head.weight

The rows of the fused projection go by key-value head: its query heads, its key head, its value
head. The config is that code's own (lit_config.json) or the one of the same model as a
LlamaForCausalLM (config.json).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nope.interop.families import common
from nope.interop.families.base import Described, Ignored
from nope.interop.families.llama import LLAMA
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
from nope.interop.fields import MAX_LAYERS, MAX_VOCABULARY, MAX_WIDTH, Fields
from nope.interop.mapping import Tensor
from nope.model import ModelConfig
from nope.positions import Linear, NoPE, Position, RoPE, Unscaled

_MARK = 'transformer.h.0.attn.attn.weight'

# Options of lit-gpt, and the values that leave the model what it is here.
_FIXED: Mapping[str, tuple[Any, ...]] = {
    '_norm_class': ('RMSNorm', 'FusedRMSNorm'),
    '_mlp_class': ('LLaMAMLP',),
    'bias': (False,),
    'lm_head_bias': (False,),
    'attn_bias': (False,),
    'parallel_residual': (False,),
    'shared_attention_norm': (False,),
    'scale_embeddings': (False,),
    'post_attention_norm': (False,),
    'post_mlp_norm': (False,),
    'norm_qk': (False,),
    'n_expert': (0,),
    'sliding_window_size': (),
    'attention_logit_softcapping': (),
    'final_logit_softcapping': (),
    'attention_scores_scalar': (),
    'rope_adjustments': (),
}


class LitGPT:
    """A `nope.interop.families.base.Family`."""

    name = 'lit-gpt'

    def owns(self, config: Mapping[str, Any], names: frozenset[str]) -> bool:
        return _MARK in names

    def read_config(self, config: Mapping[str, Any], names: frozenset[str]) -> Described:
        if 'n_layer' not in config and 'n_embd' not in config:
            fields = Fields(config)
            fields.only('model_type', LLAMA.name, why='these tensors are those of a Llama')
            for key in LLAMA.biases:
                fields.only(key, False, why='these tensors have no biases')
            return LLAMA.read_config(config, names)
        # What says nothing of the model's shape may be left out: it is then TinyLlama's.
        fields = Fields(config, 'lit_config.json: ')
        for key, accepted in _FIXED.items():
            fields.only(key, *accepted, why='others are not among what is read of lit-gpt')
        width = fields.integer('n_embd', MAX_WIDTH)
        heads = fields.integer('n_head', MAX_WIDTH)
        if width % heads:
            raise fields.wrong('n_embd', f'a multiple of n_head, {heads}')
        if 'n_query_groups' not in fields.values:
            raise fields.wrong('n_query_groups', f'a divisor of n_head, or null for {heads}')
        kv_heads = fields.integer('n_query_groups', heads, heads)
        if heads % kv_heads:
            raise fields.wrong('n_query_groups', f'a divisor of n_head, {heads}')
        head_dim = fields.integer('head_size', MAX_WIDTH // heads, width // heads)
        dims = int(fields.number('rotary_percentage', 1.0, most=1.0, zero=True) * head_dim)
        ratio = fields.number(fields.agreed('condense_ratio', 'rope_condense_ratio'), 1.0)
        base = fields.number('rope_base', 10_000.0, above=1.0)
        scaling = Unscaled() if ratio == 1 else Linear(ratio)
        turning = None if dims == head_dim else dims
        position: Position = RoPE(base, scaling, dims=turning) if dims else NoPE()
        values = {
            'layers': fields.integer('n_layer', MAX_LAYERS),
            'width': width,
            'heads': heads,
            'kv_heads': kv_heads,
            'head_dim': head_dim,
            'mlp_width': fields.integer('intermediate_size', MAX_WIDTH),
            'vocab_size': fields.integer('padded_vocab_size', MAX_VOCABULARY),
            'norm_epsilon': fields.number('norm_eps', 1e-5, most=1.0, zero=True),
            'position': position,
        }
        train_length = fields.optional_length('block_size')
        return common.described(fields, common.made(fields, values), train_length)

    def tensors(self, config: ModelConfig, names: frozenset[str]) -> list[Tensor]:
        D, F, H = config.width, config.mlp_width, config.head_dim
        N, K = config.heads, config.kv_heads
        # By group: N / K query heads, a key head, a value head, of H rows each.
        rows_KGH = np.arange((N + 2 * K) * H).reshape(K, N // K + 2, H)
        parts = rows_KGH[:, :-2], rows_KGH[:, -2], rows_KGH[:, -1]
        layers = [
            *norm('norm_1', 'attention_norm', config),
            *fused_qkv('attn.attn', config, [rows.reshape(-1) for rows in parts]),
            output_weight('attn.proj.weight', config),
            *norm('norm_2', 'mlp_norm', config),
            matrix('mlp.swiglu.w1.weight', ('mlp', 'gate'), F, D),
            matrix('mlp.swiglu.w2.weight', ('mlp', 'up'), F, D),
            matrix('mlp.swiglu.w3.weight', ('mlp', 'down'), D, F),
        ]
        return [
            embedding('transformer.wte.weight', config),
            *stacked('transformer.h.', layers, config.layers),
            *outer_norm('transformer.ln_f', 'final_norm', config),
            *head(config),
        ]

    def ignored(self, config: ModelConfig) -> tuple[Ignored, ...]:
        return common.tied_head(config)

    def unwritable(self, config: ModelConfig) -> str | None:
        return 'it is only read: what can be said in it, llama says too'

    def write_config(self, config: ModelConfig, described: Described) -> dict[str, Any]:
        raise ValueError(f'{self.name}: {self.unwritable(config)}')


LITGPT = LitGPT()
