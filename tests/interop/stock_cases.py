"""Variants of stock models by name: their family, and fields of its config other than defaults."""

from __future__ import annotations

import functools
from typing import Any

from tests.interop.stock import LONGEST, TRAINED

WINDOW = 24
FULL, SLIDING = 'full_attention', 'sliding_attention'


def rope(kind: str, **fields: Any) -> dict[str, Any]:
    """Frequencies of which some turn often within `TRAINED` tokens, some less than once."""
    fields = {'rope_type': kind, 'rope_theta': 500.0, **fields}
    if kind in ('yarn', 'longrope', 'llama3'):
        fields['original_max_position_embeddings'] = TRAINED
        return {'rope_parameters': fields, 'max_position_embeddings': LONGEST}
    return {'rope_parameters': fields}


YARN = functools.partial(rope, 'yarn', factor=2.5, beta_fast=4.0, beta_slow=0.5)
LONGROPE = functools.partial(
    rope,
    'longrope',
    short_factor=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
    long_factor=[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0],
)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    'llama': ('llama', {}),
    'llama, biases, tied': (
        'llama',
        {'attention_bias': True, 'mlp_bias': True, 'tie_word_embeddings': True},
    ),
    'linear': ('llama', rope('linear', factor=2.5)),
    'dynamic': ('llama', rope('dynamic', factor=2.0)),
    'yarn': ('llama', YARN()),
    'yarn, ramp beyond the last pair': ('llama', YARN(rope_theta=4.0)),
    'yarn, attention_factor': ('llama', YARN(attention_factor=1.3)),
    'yarn, mscale': ('llama', YARN(mscale=1.2, mscale_all_dim=0.5)),
    'yarn, not truncated': ('llama', YARN(truncate=False)),
    'longrope': ('llama', LONGROPE()),
    'longrope, attention_factor': ('llama', LONGROPE(attention_factor=1.3)),
    'llama3': ('llama', rope('llama3', factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)),
    'proportional': ('llama', rope('proportional', partial_rotary_factor=0.4)),
    'mistral, window': ('mistral', {'sliding_window': WINDOW}),
    'qwen2': ('qwen2', {}),
    'qwen3': ('qwen3', {}),
    'qwen3, biases, wide heads': ('qwen3', {'head_dim': 24, 'attention_bias': True}),
    'qwen3, windows': (
        'qwen3',
        {'use_sliding_window': True, 'sliding_window': WINDOW, 'max_window_layers': 2},
    ),
    'smollm3': ('smollm3', {}),
    'smollm3, windows': (
        'smollm3',
        {
            'no_rope_layers': [1, 0, 0, 1],
            'use_sliding_window': True,
            'sliding_window': WINDOW,
            'tie_word_embeddings': True,
        },
    ),
    'cohere2': ('cohere2', {}),
    'cohere2, biases, wide heads, a head': (
        'cohere2',
        {'attention_bias': True, 'head_dim': 24, 'tie_word_embeddings': False},
    ),
    'cohere2, yarn, other layers': (
        'cohere2',
        {**YARN(), 'layer_types': [FULL, SLIDING, SLIDING, FULL], 'num_key_value_heads': 4},
    ),
    'cohere2, no positions': ('cohere2', {'layer_types': [FULL] * 4}),
    'olmo2': ('olmo2', {}),
    'olmo2, biases, wide heads, tied': (
        'olmo2',
        {'attention_bias': True, 'head_dim': 24, 'tie_word_embeddings': True},
    ),
    'olmo3': ('olmo3', {}),
    'olmo3, yarn': (
        'olmo3',
        {
            'rope_parameters': {FULL: YARN(rope_theta=500_000.0)['rope_parameters'], SLIDING: None},
            'max_position_embeddings': LONGEST,
        },
    ),
    'olmo3, two bases': (
        'olmo3',
        {
            'rope_parameters': {
                FULL: YARN(rope_theta=500.0)['rope_parameters'],
                SLIDING: {'rope_type': 'default', 'rope_theta': 100.0},
            },
            'max_position_embeddings': LONGEST,
            'layer_types': [SLIDING, FULL, FULL, SLIDING],
            'num_key_value_heads': 4,
        },
    ),
    'exaone4': ('exaone4', {}),
    'exaone4, llama3, other layers, wide heads': (
        'exaone4',
        {
            **rope('llama3', factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0),
            'layer_types': [FULL, SLIDING, SLIDING, FULL],
            'head_dim': 24,
            'tie_word_embeddings': True,
        },
    ),
    'exaone4, no windows': (
        'exaone4',
        {'sliding_window': None, 'layer_types': [FULL] * 4, 'num_key_value_heads': 4},
    ),
    'exaone4, no positions': ('exaone4', {'layer_types': [FULL] * 4}),
    'ministral3': ('ministral3', YARN(mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.5)),
    'ministral3, windows, wide heads': (
        'ministral3',
        {
            **rope('default', llama_4_scaling_beta=0.7, original_max_position_embeddings=40),
            'sliding_window': WINDOW,
            'head_dim': 24,
        },
    ),
    'gemma3': ('gemma3_text', {'layer_types': [SLIDING, FULL, SLIDING, SLIDING]}),
    'gemma3, linear, biases, a head, other queries': (
        'gemma3_text',
        {
            'rope_parameters': {
                FULL: {'rope_type': 'linear', 'factor': 2.5, 'rope_theta': 500.0},
                SLIDING: {'rope_type': 'default', 'rope_theta': 100.0},
            },
            'layer_types': [SLIDING, SLIDING, SLIDING, FULL],
            'attention_bias': True,
            'head_dim': 24,
            'query_pre_attn_scalar': 50,
            'tie_word_embeddings': False,
        },
    ),
    'gemma4': ('gemma4_text', {}),
    'gemma4, values from keys, biases, a head, other heads': (
        'gemma4_text',
        {
            'rope_parameters': {
                FULL: {
                    'rope_type': 'proportional',
                    'partial_rotary_factor': 0.5,
                    'rope_theta': 500.0,
                },
                SLIDING: {'rope_type': 'default', 'rope_theta': 100.0},
            },
            'num_kv_shared_layers': 3,
            'use_double_wide_mlp': False,
            'attention_k_eq_v': True,
            'num_global_key_value_heads': 1,
            'attention_bias': True,
            'hidden_activation': 'silu',
            'final_logit_softcapping': None,
            'tie_word_embeddings': False,
        },
    ),
    'gemma4, one shape, no inputs': (
        'gemma4_text',
        {
            'global_head_dim': 16,
            'num_kv_shared_layers': 0,
            'use_double_wide_mlp': False,
            'hidden_size_per_layer_input': 0,
        },
    ),
    'gemma4_unified': ('gemma4_unified_text', {}),
    'phi3, longrope': ('phi3', {**LONGROPE(), 'original_max_position_embeddings': TRAINED}),
    'phi3, longrope, some dimensions, window, tied': (
        'phi3',
        {
            **LONGROPE(
                short_factor=[1.0, 1.1, 1.2, 1.3, 1.5, 1.7],
                long_factor=[1.0, 1.2, 1.5, 2.0, 3.0, 5.0],
                attention_factor=1.2,
                partial_rotary_factor=0.75,
            ),
            'original_max_position_embeddings': TRAINED,
            'sliding_window': WINDOW,
            'tie_word_embeddings': True,
        },
    ),
    'phi3, some dimensions': ('phi3', rope('default', partial_rotary_factor=0.5)),
    'granite': ('granite', {'embedding_multiplier': 3.0, 'logits_scaling': 0.7}),
    'granite, yarn, biases, tied': (
        'granite',
        {
            **YARN(),
            'attention_bias': True,
            'mlp_bias': True,
            'attention_multiplier': 0.25,
            'tie_word_embeddings': True,
        },
    ),
    'granite_swa': ('granite_swa', {}),
    'granite_swa, other layers and bases, biases, wide heads': (
        'granite_swa',
        {
            **YARN(rope_theta=300.0),
            'layer_types': [SLIDING, FULL, FULL, SLIDING],
            'layer_rope_theta': [0, 500.0, 0, 100.0],
            'attention_bias': True,
            'head_dim': 24,
            'embedding_multiplier': 2.0,
            'logits_scaling': 0.5,
        },
    ),
    'nemotron_h': ('nemotron_h', {}),
    'nemotron_h, one group, biases, steps of a least size': (
        'nemotron_h',
        {
            'hybrid_override_pattern': '*M--M*',
            'n_groups': 1,
            'conv_kernel': 3,
            'use_bias': True,
            'use_conv_bias': False,
            'mlp_bias': True,
            'time_step_min': 0.05,
        },
    ),
    'granitemoehybrid': ('granitemoehybrid', {'embedding_multiplier': 3.0, 'logits_scaling': 0.7}),
    'granitemoehybrid, groups, biases, RoPE, tied': (
        'granitemoehybrid',
        {
            **YARN(),
            'layer_types': ['attention', 'mamba', 'mamba', 'attention'],
            'position_embedding_type': 'rope',
            'mamba_n_groups': 2,
            'mamba_expand': 1,
            'mamba_proj_bias': True,
            'mamba_conv_bias': False,
            'attention_bias': True,
            'tie_word_embeddings': True,
        },
    ),
    'granitemoehybrid, steps of bounded size': (
        'granitemoehybrid',
        {'time_step_limit': [0.04, 0.06]},
    ),
    'bloom': ('bloom', {}),
    'bloom, 6 heads': ('bloom', {'n_head': 6, 'hidden_size': 96}),
    'mpt': ('mpt', {}),
    'mpt, 6 heads': ('mpt', {'n_heads': 6, 'd_model': 96}),
    'mpt, softmax_scale': ('mpt', {'attn_config': {'softmax_scale': 0.4}}),
}
# Variants of families and of ways to extend that others here cover.
ALIKE = (
    'yarn, attention_factor', 'yarn, mscale', 'yarn, not truncated', 'longrope, attention_factor',
    'qwen3', 'smollm3', 'cohere2, no positions', 'olmo3', 'exaone4, no positions', 'mpt', 'bloom',
    'gemma3', 'granite', 'gemma4, one shape, no inputs',
)  # fmt: skip
# Of these the frequencies follow the length of the sequence.
FOLLOWING = ('dynamic', 'longrope')


def follows(name: str) -> bool:
    return name.split(',')[0] in FOLLOWING


def cached_alike(name: str) -> bool:
    """Whether stock computes the same with a cache as without one."""
    return not follows(name) and 'steps of' not in name
