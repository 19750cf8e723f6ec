"""Published models of families: their sizes and what they are."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from nope.interop.families import Described, family_of
from nope.model import counts
from nope.positions import RoPE
from tests import tiny
from tests.interop.family_cases import NONE, bloom, by_name, described, mpt, read

TINYLLAMA: dict[str, Any] = {
    'architectures': ['LlamaForCausalLM'],
    'bos_token_id': 1,
    'eos_token_id': 2,
    'hidden_act': 'silu',
    'hidden_size': 2048,
    'initializer_range': 0.02,
    'intermediate_size': 5632,
    'max_position_embeddings': 2048,
    'model_type': 'llama',
    'num_attention_heads': 32,
    'num_hidden_layers': 22,
    'num_key_value_heads': 4,
    'pretraining_tp': 1,
    'rms_norm_eps': 1e-05,
    'rope_scaling': None,
    'tie_word_embeddings': False,
    'torch_dtype': 'float32',
    'use_cache': True,
    'vocab_size': 32000,
}
LIT_TINYLLAMA: dict[str, Any] = {
    'org': 'StatNLP-research',
    'name': 'tiny_LLaMA_1b',
    'block_size': 2048,
    'vocab_size': 32000,
    'padding_multiple': 64,
    'padded_vocab_size': 32000,
    'n_layer': 22,
    'n_head': 32,
    'n_embd': 2048,
    'rotary_percentage': 1.0,
    'parallel_residual': False,
    'bias': False,
    'n_query_groups': 4,
    'shared_attention_norm': False,
    '_norm_class': 'FusedRMSNorm',
    'norm_eps': 1e-05,
    '_mlp_class': 'LLaMAMLP',
    'intermediate_size': 5632,
    'condense_ratio': 1,
}
BLOOM_1B1: dict[str, Any] = {
    'apply_residual_connection_post_layernorm': False,
    'attention_dropout': 0.0,
    'bos_token_id': 1,
    'eos_token_id': 2,
    'hidden_dropout': 0.0,
    'layer_norm_epsilon': 1e-05,
    'model_type': 'bloom',
    'n_embed': 1536,
    'n_inner': None,
    'n_layer': 24,
    'num_attention_heads': 16,
    'pretraining_tp': 1,
    'seq_length': 2048,
    'vocab_size': 250880,
}
MPT_7B: dict[str, Any] = {
    'architectures': ['MPTForCausalLM'],
    'attn_config': {
        'alibi': True,
        'alibi_bias_max': 8,
        'attn_impl': 'torch',
        'attn_pdrop': 0,
        'attn_type': 'multihead_attention',
        'attn_uses_sequence_id': False,
        'clip_qkv': None,
        'prefix_lm': False,
        'qk_ln': False,
        'softmax_scale': None,
    },
    'd_model': 4096,
    'expansion_ratio': 4,
    'learned_pos_emb': True,
    'logit_scale': None,
    'max_seq_len': 2048,
    'model_type': 'mpt',
    'n_heads': 32,
    'n_layers': 32,
    'no_bias': True,
    'norm_type': 'low_precision_layernorm',
    'torch_dtype': 'bfloat16',
    'vocab_size': 50432,
}
LIT_NAMES = frozenset({'transformer.h.0.attn.attn.weight'})


def test_published_models_are_what_they_are() -> None:
    tinyllama = dataclasses.replace(tiny.TINYLLAMA, position=RoPE())
    facts = described(tinyllama, train_length=2048, bos=1, eos=2)
    assert read(TINYLLAMA) == read(TINYLLAMA, LIT_NAMES) == facts
    assert read(LIT_TINYLLAMA, LIT_NAMES) == Described(tinyllama, 2048, longest=2048)
    sizes = {'layers': 24, 'width': 1536, 'heads': 16, 'kv_heads': 16, 'head_dim': 96}
    model = bloom(**sizes, mlp_width=6144, vocab_size=250_880)
    assert read(BLOOM_1B1) == described(model, train_length=2048, bos=1, eos=2)
    sizes = {'layers': 32, 'width': 4096, 'heads': 32, 'kv_heads': 32, 'head_dim': 128}
    model = mpt(**sizes, mlp_width=16_384, vocab_size=50_432)
    assert read(MPT_7B) == described(model, train_length=2048)


@pytest.mark.parametrize(
    ('config', 'names', 'parameters'),
    [
        (TINYLLAMA, NONE, 1_100_048_384),
        (TINYLLAMA, LIT_NAMES, 1_100_048_384),
        (LIT_TINYLLAMA, LIT_NAMES, 1_100_048_384),
        (BLOOM_1B1, NONE, 1_065_314_304),
        (MPT_7B, NONE, 6_649_286_656),
    ],
    ids=['TinyLlama', 'lit-gpt', 'lit-gpt of its own', 'BLOOM', 'MPT'],
)
def test_published_sizes(config: dict, names: frozenset, parameters: int) -> None:
    model = read(config, names).model
    tensors = family_of(config, names).tensors(model, names)
    assert counts.parameters(model) == parameters
    assert sum(math.prod(shape) for shape in by_name(tensors).values()) == parameters
