"""Values of config.json that a family cannot honour, refused by key."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

from tests.interop.family_cases import (
    BY_NAME,
    GLOBAL,
    LOCAL,
    NONE,
    OF_FAMILY,
    ROPE,
    WRITTEN,
    decoder,
    described,
    gemma4,
    inside,
    read,
    written,
)
from tests.interop.family_sizes_test import LIT_NAMES, LIT_TINYLLAMA, MPT_7B, TINYLLAMA


def test_code_of_a_checkpoint_s_own_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """It may be another model than the class that its type names."""
    config = written('llama', described(decoder()))
    read(config)
    assert not caplog.records
    read(config | {'auto_map': {'AutoModelForCausalLM': 'modeling_own.OwnForCausalLM'}})
    (warning,) = caplog.messages
    assert "'modeling_own.OwnForCausalLM', which is not run" in warning
    assert warning.endswith("plain 'llama'")
    read(config | {'auto_map': {'AutoModelForCausalLM': '\r\x1b[2Kall is well'}})
    assert caplog.messages[-1].isprintable()


SLIDING = {'use_sliding_window': True, 'sliding_window': 7}
UNTRUNCATED = {'rope_type': 'yarn', 'factor': 4.0, 'truncate': False}


@pytest.mark.parametrize(
    ('family', 'changes', 'parts'),
    [
        ('llama', {'hidden_act': 'tanh'}, ['hidden_act', 'tanh', 'silu']),
        ('llama', {'hidden_size': 25}, ['hidden_size is 25', '4']),
        ('llama', {'num_key_value_heads': 3}, ['num_key_value_heads is 3', '4']),
        ('llama', {'head_dim': 5}, ['config.json', 'head_dim is 5']),
        ('llama', {'sliding_window': 7}, ['sliding_window is 7', 'null', 'windows']),
        ('llama', {'use_sliding_window': True}, ['use_sliding_window', 'false']),
        ('qwen3', {'is_causal': False}, ['is_causal is False', 'see no later ones']),
        ('llama', {'layer_types': ['sliding_attention'] * 3}, ['layer_types', 'full_attention']),
        ('llama', {'no_rope_layers': [0, 1, 1]}, ['no_rope_layers', 'leaves no layer out by it']),
        (
            'llama',
            {'position_embedding_type': 'nope'},
            ['position_embedding_type', 'accepted: "rope"'],
        ),
        ('granite', {'layer_rope_theta': [0, 1e4, 0]}, ['layer_rope_theta', 'GraniteForCausalLM']),
        ('qwen3', {'use_rope': False}, ['use_rope is False']),
        ('llama', {'rotary_pct': 0.0}, ['rotary_pct is 0.0', 'leaves no layer out by it']),
        ('llama', {'qk_rope_head_dim': 0}, ['qk_rope_head_dim is 0', 'accepted: null']),
        ('mistral', {'partial_rotary_factor': 0.0}, ['partial_rotary_factor is 0.0']),
        (
            'cohere2',
            {'rope_theta': None, 'rope_parameters': {'full_attention': None}},
            ['rope_parameters.full_attention is None', 'one rotation for all'],
        ),
        ('nemotron_h', {'use_rope': True}, ['use_rope is True']),
        ('cohere2', {'skip_rope': True}, ['skip_rope is True']),
        ('llama', {'rope_interleaved': True}, ['rope_interleaved is True', 'halves']),
        ('llama', {'final_logit_softcapping': 30.0}, ['final_logit_softcapping is 30.0']),
        ('llama', {'use_qk_norm': True}, ['use_qk_norm is True', 'norms']),
        ('llama', {'quantization_config': {'bits': 4}}, ['quantization_config', 'null']),
        ('llama', {'per_layer_config': [{}]}, ['per_layer_config']),
        ('llama', {'torch_dtype': 'int8'}, ['torch_dtype', 'int8', 'bfloat16']),
        ('llama', {'dtype': 'bfloat16', 'torch_dtype': 'float16'}, ['dtype', 'bfloat16']),
        (
            'mistral',
            {'sliding_window': 7, 'layer_types': ['full_attention'] * 3},
            ['layer_types', 'sliding_attention'],
        ),
        ('qwen2', {'attention_bias': False}, ['attention_bias is False', 'true']),
        ('qwen3', {**SLIDING, 'layer_types': ['full_attention']}, ['layer_types', '3 layers']),
        ('smollm3', {'no_rope_layers': [1, 1]}, ['no_rope_layers', '3 layers']),
        ('cohere2', {'sliding_window': None}, ['sliding_window is None', 'integer']),
        ('cohere2', {'use_parallel_block': False}, ['use_parallel_block is False', 'true']),
        ('cohere2', {'rope_interleaved': False}, ['rope_interleaved is False', 'neighbouring']),
        ('olmo2', {'use_qk_norm': False}, ['use_qk_norm is False', 'true']),
        ('olmo3', {'sliding_window_pattern': 2}, ['sliding_window_pattern is 2', '4']),
        ('olmo3', {'rope_theta': 1e4}, ['rope_theta is 10000.0', 'both types of layers']),
        (
            'olmo3',
            {'rope_parameters': None, 'rope_theta': 1e4},
            ['rope_theta is 10000.0', '500000'],
        ),
        (
            'olmo3',
            {'rope_parameters': {'rope_type': 'default', 'rope_theta': 1e4}},
            ['rope_parameters.', 'full_attention', 'sliding_attention'],
        ),
        (
            'olmo3',
            {'rope_parameters': {'sliding_attention': {'rope_type': 'linear', 'factor': 2.0}}},
            ['rope_parameters.sliding_attention.rope_type', 'default'],
        ),
        (
            'olmo3',
            {'rope_parameters': {'full_attention': UNTRUNCATED}},
            ['rope_parameters.full_attention.truncate is False', 'stock truncates'],
        ),
        (
            'olmo3',
            {'rope_parameters': None, 'rope_scaling': UNTRUNCATED},
            ['rope_scaling.truncate is False', 'stock truncates'],
        ),
        (
            'olmo3',
            {'rope_parameters': None, 'rope_scaling': {'type': 'yarn', 'factor': 4.0}},
            ["rope_scaling.type is 'yarn'", 'stock looks for rope_type alone'],
        ),
        (
            'olmo3',
            {
                'rope_parameters': None,
                'rope_scaling': {'rope_type': 'yarn', 'factor': 4.0},
                'original_max_position_embeddings': 9,
            },
            ['original_max_position_embeddings is 9', 'of the settings alone'],
        ),
        ('exaone4', {'sliding_window': None}, ['layer_types', 'full_attention only']),
        (
            'ministral3',
            {'rope_parameters': {'original_max_position_embeddings': 9}},
            ['rope_parameters.llama_4_scaling_beta is missing'],
        ),
        (
            'ministral3',
            {'rope_parameters': {'llama_4_scaling_beta': 0.1}},
            ['rope_parameters.original_max_position_embeddings is missing'],
        ),
        (
            'llama',
            {'rope_scaling': {'rope_type': 'default', 'llama_4_scaling_beta': 0.1}},
            ['llama_4_scaling_beta'],
        ),
        (
            'gemma3_text',
            {'rope_parameters': {'full_attention': None}},
            ['rope_theta is 500.0', 'both types of layers'],
        ),
        ('gemma4_text', {'enable_moe_block': True}, ['enable_moe_block is True', 'experts']),
        (
            'gemma4_text',
            {'sliding_window_pattern': 3, 'layer_types': None},
            ['sliding_window_pattern is 3', '6', 'layer_types is left out'],
        ),
        ('gemma4_text', {'num_kv_shared_layers': 3}, ['num_kv_shared_layers is 3', 'layer_types']),
        (
            'gemma4_text',
            {'vocab_size_per_layer_input': 41},
            ['vocab_size_per_layer_input is 41', '40'],
        ),
        (
            'gemma4_text',
            {'rope_parameters': None, 'rope_theta': 1e6},
            ['rope_theta', 'reads rope_parameters alone'],
        ),
        (
            'gemma4_text',
            {'per_layer_config': {'0': {'head_dim': 8}}},
            ['per_layer_config.', '0', 'accepted are the keys 1, 3'],
        ),
        (
            'gemma4_text',
            {'per_layer_config': {'1': {'head_dim': 8}}},
            ['per_layer_config.3 is missing', 'the same as of layer 1'],
        ),
        (
            'gemma4_text',
            {'per_layer_config': {'1': {'sliding_window': 8}}},
            ['per_layer_config.1.', 'sliding_window', 'head_dim'],
        ),
        (
            'phi3',
            {'rope_scaling': {'type': 'yarn', 'factor': 2.0}},
            ['rope_scaling.type', 'yarn', 'longrope'],
        ),
        (
            'phi3',
            {'original_max_position_embeddings': 32},
            ['rope_scaling.original_max_position_embeddings is 16', '32', 'outside'],
        ),
        ('phi3', {'partial_rotary_factor': 0.5}, ['partial_rotary_factor is 0.5', '6', 'not 3']),
        ('phi3', {'partial_rotary_factor': 1.0}, ['short_factor is', 'list of 3', 'head_dim, 6']),
        ('llama', {'partial_rotary_factor': 0.5}, ['partial_rotary_factor is 0.5', 'all dimens']),
        ('granite_swa', {'layer_rope_theta': [0, 7.0]}, ['layer_rope_theta', '3 layers']),
        ('granite_swa', {'layer_rope_theta': [0, 0.5, 0]}, ['layer_rope_theta', 'above 1, or 0']),
        ('bloom', {'apply_residual_connection_post_layernorm': True}, ['post_layernorm', 'false']),
        ('bloom', {'slow_but_exact': True, 'pretraining_tp': 2}, ['slow_but_exact', 'biases']),
        ('bloom', {'n_inner': 95}, ['n_inner is 95', '96']),
        ('bloom', {'n_head': 5}, ['hidden_size is 24', 'n_head']),
        ('mpt', {'attn_config': {'alibi': False}}, ['attn_config.alibi is False', 'true']),
        ('mpt', {'attn_config': {'clip_qkv': 6.0}}, ['clip_qkv is 6.0', 'null']),
        ('mpt', {'attn_config': {'kv_n_heads': 2}}, ['kv_n_heads is 2', '4']),
        ('mpt', {'expansion_ratio': 2}, ['expansion_ratio is 2', '4']),
        (
            'nemotron_h',
            {'hybrid_override_pattern': 'MEM*E'},
            ['hybrid_override_pattern has mixtures of experts in 2 of 5 layers', 'Nano 9B'],
        ),
        ('nemotron_h', {'hybrid_override_pattern': 'M-M'}, ["is 'M-M'", 'attention']),
        ('nemotron_h', {'time_step_limit': [0.01, 0.1]}, ['time_step_limit', 'time_step_min']),
        ('nemotron_h', {'n_groups': 4}, ['n_groups is 4', '6']),
        ('nemotron_h', {'mamba_hidden_act': 'gelu'}, ['mamba_hidden_act', 'silu']),
        ('nemotron_h', {'attention_bias': True}, ['attention_bias is True']),
        ('granitemoehybrid', {'num_local_experts': 64}, ['num_local_experts is 64', 'Micro']),
        ('granitemoehybrid', {'hidden_act': 'gelu'}, ["hidden_act is 'gelu'", 'silu']),
        ('granitemoehybrid', {'mamba_d_conv': 1}, ['mamba_d_conv is 1']),
        ('granitemoehybrid', {'mamba_d_head': 7}, ['mamba_d_head is 7', '6']),
        ('granitemoehybrid', {'position_embedding_type': 'alibi'}, ["is 'alibi'", '"nope"']),
        ('granitemoehybrid', {'time_step_limit': [0.5, 0.1]}, ['time_step_limit', '0 or more']),
        ('mpt', {'ffn_config': {'ffn_type': 'mb_dmoe'}}, ['ffn_config.ffn_type', 'mptmlp']),
    ],
)
def test_what_cannot_be_honoured_is_refused(family: str, changes: dict, parts: list) -> None:
    model = OF_FAMILY.get(family, decoder(position=ROPE))
    with pytest.raises(ValueError) as refusal:
        read({**written(family, described(model)), **changes})
    message = str(refusal.value)
    assert message.startswith('config.json: ')
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    ('config', 'changes', 'parts'),
    [
        (LIT_TINYLLAMA, {'parallel_residual': True}, ['lit_config.json: parallel_residual']),
        (LIT_TINYLLAMA, {'_norm_class': 'LayerNorm'}, ['_norm_class', 'FusedRMSNorm']),
        (LIT_TINYLLAMA, {'bias': True}, ['bias is True']),
        (LIT_TINYLLAMA, {'n_query_groups': 5}, ['n_query_groups is 5', '32']),
        (LIT_TINYLLAMA, {'n_head': 33}, ['n_embd is 2048', '33']),
        (LIT_TINYLLAMA, {'rotary_percentage': 0.05}, ['lit_config.json', 'dims is 3']),
        (LIT_TINYLLAMA, {'padded_vocab_size': None}, ['padded_vocab_size is None']),
        (TINYLLAMA, {'model_type': 'qwen3'}, ['config.json: model_type', 'llama']),
        (TINYLLAMA, {'attention_bias': True}, ['attention_bias is True']),
    ],
)
def test_what_lit_gpt_cannot_honour_is_refused(config: dict, changes: dict, parts: list) -> None:
    with pytest.raises(ValueError) as refusal:
        read({**config, **changes}, LIT_NAMES)
    assert all(part in str(refusal.value) for part in parts), str(refusal.value)


HOSTILE = [
    *(None, True, 0, -1, 10**12, 10**4000, 2.5, math.nan, math.inf, -1e308, '', '7', 'a' * 10**5),
    *([], [[]], [1] * 10**5, {}, {'type': []}, {'type': 'yarn', 'factor': 1e300}),
]
BY_LAYER = (LOCAL, LOCAL, dataclasses.replace(GLOBAL, kv_heads=4))
UNDER_ATTACK = {
    **{
        name: (written(name, described(model)), NONE)
        for name, model in OF_FAMILY.items()
        if name not in ('gemma4_unified_text', 'mpt')
    },
    **{
        WRITTEN[case][0]: (written(WRITTEN[case][0], described(WRITTEN[case][1])), NONE)
        for case in (
            *('scaled RoPE', 'window', 'QK-norm, biases and windows'),
            'some RoPE and windows',
        )
    },
    'gemma4_unified_text': (
        written('gemma4_unified_text', described(gemma4(pattern=BY_LAYER, token_width=None))),
        NONE,
    ),
    'gemma3 with gemma3_text': (inside('gemma3', 'gemma3_text'), NONE),
    'mistral3 with ministral3': (inside('mistral3', 'ministral3'), NONE),
    'mpt': (MPT_7B, NONE),
    'lit-gpt': (LIT_TINYLLAMA, LIT_NAMES),
}


def attacks(config: dict) -> list[tuple[str, dict]]:
    """The key, and the config with something else there or nothing, at all depths."""
    found = []
    for key, value in config.items():
        if key != 'text_config':  # what says which family it is
            found += [(key, {**config, key: hostile}) for hostile in HOSTILE]
            found.append((key, {k: v for k, v in config.items() if k != key}))
        if isinstance(value, dict):
            found += [(inner, {**config, key: changed}) for inner, changed in attacks(value)]
    return found


@pytest.mark.parametrize('family', UNDER_ATTACK)
def test_hostile_values_are_refused_by_key(family: str) -> None:
    config, names = UNDER_ATTACK[family]
    refused = 0
    for key, hostile in attacks(config):
        try:
            BY_NAME[family].read_config(hostile, names)
        except ValueError as error:
            message, refused = str(error), refused + 1
            assert re.match(r'(lit_)?config\.json: ', message)
            assert key in message and len(message) < 2000, message[:2000]
    assert refused > 100
