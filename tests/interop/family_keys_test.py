"""config.json of families: what is written comes back, and every key is understood."""

from __future__ import annotations

import dataclasses

import pytest

from nope.interop.families import writer_of
from nope.model import LayerKind
from nope.model.lam import GivenLaw, LogFloor
from nope.positions import ByParts, Linear, LongRoPE, NoPE, Position, RoPE, longrope_multiplier
from tests.interop.family_cases import (
    AS_KEYS,
    BY_NAME,
    GLOBAL,
    HALF_WINDOWS,
    HYBRID,
    LOCAL,
    NONE,
    OF_FAMILY,
    ROPE,
    WRITTEN,
    decoder,
    described,
    parameters_of,
    read,
    without_keys,
    written,
)
from tests.interop.family_sizes_test import LIT_NAMES, LIT_TINYLLAMA

QUARTER = dataclasses.replace(GLOBAL, position=RoPE(1e6, share=0.25), head_dim=16)


@pytest.mark.parametrize('case', WRITTEN)
@pytest.mark.parametrize('train_length', [16, None])
def test_a_written_config_is_read_as_the_same_model(case: str, train_length: int | None) -> None:
    name, config = WRITTEN[case]
    assert writer_of(config).name == name
    known = getattr(config.position, 'scaling', None)
    length = getattr(known, 'train_length', train_length)
    about = described(config, train_length=length, bos=3, eos=None, pad=0)
    found = written(name, about)
    longest = found.get('max_position_embeddings', length)  # a scaling may set it
    assert read(found) == about._replace(longest=longest)
    assert (found['model_type'], found['torch_dtype']) == (name, 'float32')
    (architecture,) = found['architectures']
    assert architecture.lower() == f'{name.removesuffix("_text").replace("_", "")}forcausallm'
    # Null, for which stock takes none: left out, it would take one of its own vocabulary.
    assert found['eos_token_id'] is None


def test_how_a_model_runs_is_no_part_of_it() -> None:
    config = decoder(
        position=ROPE, dtype='bfloat16', remat='full', unroll=None, attention='chunked'
    )
    assert read(written('llama', described(config))).model == decoder(position=ROPE)


def test_patterns_are_read_at_their_shortest() -> None:
    turns = (LayerKind(ROPE), LayerKind())
    long = decoder(layers=5, pattern=(*turns, *turns))
    assert read(written('smollm3', described(long))).model.pattern == turns
    alike = decoder(pattern=(LayerKind(ROPE), LayerKind(ROPE)))
    assert writer_of(alike).name == 'llama'
    assert read(written('llama', described(alike))).model == decoder(position=ROPE)


@pytest.mark.parametrize(
    ('family', 'changes', 'expected'),
    [
        ('llama', {'num_key_value_heads': None, 'head_dim': None}, {'kv_heads': 4, 'head_dim': 6}),
        ('llama', {'hidden_act': 'gelu_new'}, {'activation': 'gelu_tanh'}),
        ('llama', {'layer_types': ['full_attention'] * 3}, {}),
        ('llama', {'pretraining_tp': 2, 'attention_dropout': 0.1, 'sliding_window': None}, {}),
        ('mistral', {'sliding_window': None}, {'window': None}),
        ('qwen2', {'sliding_window': 7, 'use_sliding_window': False}, {'window': None}),
        (
            'qwen3',
            {'sliding_window': 7, 'use_sliding_window': True, 'max_window_layers': 2},
            {'pattern': (LayerKind(ROPE), LayerKind(ROPE), LayerKind(ROPE, 7))},
        ),
        ('smollm3', {'no_rope_layers': [0, 0, 0]}, {'position': NoPE(), 'pattern': ()}),
        ('smollm3', {'no_rope_layers': None, 'no_rope_layer_interval': 1}, {'position': NoPE()}),
        (
            'smollm3',
            {'no_rope_layers': None, 'no_rope_layer_interval': 2},
            {'pattern': (LayerKind(ROPE), LayerKind())},
        ),
        (
            'cohere2',
            {'layer_types': None, 'sliding_window_pattern': 2, 'logit_scale': None},
            {'pattern': HYBRID, 'logit_multiplier': 0.0625},
        ),
        (
            'cohere2',
            {'layer_types': None, 'sliding_window_pattern': 1},
            {'position': NoPE(), 'pattern': ()},
        ),
        (
            'olmo3',
            {'rope_parameters': None, 'layer_types': None, 'sliding_window': 7},
            {'position': RoPE(5e5), 'window': 7},
        ),
        (
            'olmo3',
            {'rope_parameters': None, 'rope_scaling': {'rope_type': 'linear', 'factor': 2.0}},
            {'pattern': (LayerKind(RoPE(5e5), 5), LayerKind(RoPE(5e5, Linear(2.0))))},
        ),
        (
            'olmo3',
            {'rope_parameters': {'full_attention': {'rope_theta': 7.0}}},
            {'pattern': (LayerKind(RoPE(5e5), 5), LayerKind(RoPE(7.0)))},
        ),
        ('exaone4', {'layer_types': None, 'sliding_window_pattern': 2}, {'pattern': HYBRID}),
        (
            'exaone4',
            {'layer_types': ['full_attention'] * 3},
            {'position': NoPE(), 'window': None, 'pattern': ()},
        ),
        (
            'exaone4',
            {'layer_types': ['full_attention'] * 3, 'sliding_window': None},
            {'position': ROPE, 'window': None, 'pattern': ()},
        ),
        (
            'ministral3',
            {'rope_parameters': None, 'num_key_value_heads': 2},
            {
                'position': RoPE(1e6, ByParts(16.0, 16_384)),
                'law': GivenLaw(LogFloor(16_384), 0.1, first=0),
                'window': None,
            },
        ),
        (
            'ministral3',
            {
                'rope_parameters': {
                    'original_max_position_embeddings': 9,
                    'llama_4_scaling_beta': 0.0,
                }
            },
            {'position': RoPE(), 'law': None},
        ),
        ('gemma3_text', {'query_pre_attn_scalar': 6}, {'softmax_scale': None}),
        (
            'gemma3_text',
            {'rope_local_base_freq': None, 'layer_types': None},
            {'position': RoPE(), 'window': 5},
        ),
        (
            'gemma3_text',
            {'layer_types': None, 'sliding_window_pattern': 2},
            {'pattern': HALF_WINDOWS},
        ),
        (
            'gemma4_text',
            {'layer_types': None, 'global_head_dim': None, 'num_kv_shared_layers': None},
            {'pattern': (*(LOCAL,) * 3, dataclasses.replace(AS_KEYS, head_dim=512))},
        ),
        (
            'gemma4_text',
            {'layer_types': [*['sliding_attention'] * 4], 'num_kv_shared_layers': 0},
            {'pattern': (*(LOCAL,) * 3, AS_KEYS)},
        ),
        (
            'gemma4_text',
            {'rope_parameters': None, 'attention_k_eq_v': False, 'global_head_dim': 16},
            {'pattern': (LOCAL, QUARTER, *without_keys(LOCAL, QUARTER))},
        ),
        (
            'gemma4_text',
            {'per_layer_config': {'01': {'head_dim': 8}, '3': {'head_dim': 8}}},
            {
                'pattern': tuple(
                    dataclasses.replace(kind, kv_heads=None)
                    for kind in OF_FAMILY['gemma4_text'].pattern
                )
            },
        ),
        (
            'gemma4_text',
            {'hidden_size_per_layer_input': 0, 'final_logit_softcapping': None},
            {'token_width': None, 'logit_cap': None},
        ),
        (
            'gemma4_unified_text',
            {'num_global_key_value_heads': 1},
            {'pattern': (*(LOCAL,) * 2, GLOBAL)},
        ),
        (
            'phi3',
            {'rope_scaling': None, 'partial_rotary_factor': None, 'sliding_window': 7},
            {'position': RoPE(), 'window': 7},
        ),
        (
            'phi3',
            {
                'rope_scaling': {'type': 'su', 'short_factor': [1, 2, 3], 'long_factor': [3, 4, 5]},
                'partial_rotary_factor': 1.0,
                'original_max_position_embeddings': None,
                'max_position_embeddings': 16_384,
            },
            {
                'position': RoPE(
                    scaling=LongRoPE(
                        (1.0, 2.0, 3.0), (3.0, 4.0, 5.0), 4096, longrope_multiplier(4.0, 4096)
                    )
                )
            },
        ),
        (
            'phi3',
            {
                'rope_scaling': {'rope_type': 'default', 'partial_rotary_factor': 0.7},
                'partial_rotary_factor': None,
            },
            {'position': RoPE(dims=4)},
        ),
        (
            'granite',
            {'attention_multiplier': 6**-0.5, 'logits_scaling': 10, 'residual_multiplier': None},
            {'softmax_scale': None, 'logit_multiplier': 0.1, 'residual_multiplier': 1.0},
        ),
        (
            'granite_swa',
            {'layer_types': None, 'layer_rope_theta': None, 'sliding_window': 7},
            {'pattern': (LayerKind(ROPE), LayerKind(ROPE, 7), LayerKind(ROPE, 7))},
        ),
        (
            'granite_swa',
            {'layer_rope_theta': [7, 0, 9.0], 'layer_types': ['full_attention'] * 3},
            {'pattern': (LayerKind(RoPE(7.0)), LayerKind(), LayerKind(RoPE(9.0)))},
        ),
        ('bloom', {'slow_but_exact': True, 'pretraining_tp': 1, 'n_inner': 96}, {}),
        ('mpt', {'attn_config': None}, {'softmax_scale': None}),
        ('mpt', {'norm_type': 'layernorm', 'learned_pos_emb': True, 'verbose': 1}, {}),
    ],
)
def test_keys_are_understood(family: str, changes: dict, expected: dict) -> None:
    model = OF_FAMILY.get(family, decoder(position=ROPE))
    found = read({**written(family, described(model)), **changes}).model
    assert {key: getattr(found, key) for key in expected} == expected


def test_keys_that_are_left_out_are_the_class_s_own() -> None:
    core = {
        'hidden_size': 128,
        'intermediate_size': 32,
        'num_hidden_layers': 2,
        'num_attention_heads': 32,
        'vocab_size': 40,
    }
    llama, mistral, qwen3 = (
        read({'model_type': name, **core}).model for name in ('llama', 'mistral', 'qwen3')
    )
    assert (llama.kv_heads, llama.head_dim, llama.tied_head, llama.window) == (32, 4, False, None)
    assert (mistral.kv_heads, mistral.window, mistral.norm_epsilon) == (8, 4096, 1e-6)
    assert (qwen3.kv_heads, qwen3.head_dim, qwen3.position) == (32, 128, RoPE())


@pytest.mark.parametrize(
    ('changes', 'position'),
    [
        ({'rotary_percentage': 0.0}, NoPE()),
        ({'rotary_percentage': 0.25}, RoPE(dims=16)),
        ({'condense_ratio': 4}, RoPE(scaling=Linear(4.0))),
        ({'rope_condense_ratio': 1, 'condense_ratio': None, 'rope_base': 500}, RoPE(500.0)),
    ],
)
def test_positions_of_lit_gpt(changes: dict, position: Position) -> None:
    assert read({**LIT_TINYLLAMA, **changes}, LIT_NAMES).model.position == position


@pytest.mark.parametrize(
    ('changes', 'facts'),
    [
        ({'pad_token_id': 7}, {'pad': 7}),
        ({'pad_token_id': -1}, {'pad': None}),
        ({'pad_token_id': 10**6}, {'pad': None}),
        ({'eos_token_id': [5, 6, 5]}, {'eos': 5, 'ends': (6,)}),
        ({'eos_token_id': [5, 10**6, 6]}, {'eos': 5, 'ends': (6,)}),  # a trimmed vocabulary
        ({'bos_token_id': None, 'eos_token_id': 0}, {'bos': None, 'eos': 0}),
        ({'max_position_embeddings': None}, {'train_length': None}),
    ],
)
def test_facts(changes: dict, facts: dict) -> None:
    found = read({**written('llama', described(decoder(position=ROPE))), **changes})
    assert {key: getattr(found, key) for key in facts} == facts


def test_granite_4_without_mamba_is_read() -> None:
    config = written('granitemoehybrid', described(OF_FAMILY['granitemoehybrid']))
    whole = {'layer_types': ['attention'] * 3, 'position_embedding_type': 'rope'}
    model = read(config | whole).model
    assert not model.apart and model.position == RoPE() and model.pattern == ()
    found = BY_NAME['granitemoehybrid'].tensors(model, NONE)
    parts = [(part.path, part.layer) for tensor in found for part in tensor.parts]
    wanted = [
        (path, layer)
        for path in parameters_of(model)
        for layer in (range(3) if path[0] == 'layers' else [None])
    ]
    assert sorted(parts, key=str) == sorted(wanted, key=str)


def test_muse_glimmer_turns_by_one_base() -> None:
    """Stock takes the bases of layers for whether they turn, and turns by `rope_theta`."""
    text = {'model_type': 'muse_glimmer_text', 'hidden_size': 32, 'intermediate_size': 8}
    sizes = {'num_hidden_layers': 4, 'num_attention_heads': 4, 'vocab_size': 300_000}
    config = {'model_type': 'muse_glimmer', 'text_config': text | sizes}
    turned = {'layer_rope_theta': [0, 1e4, 0, 1e4]}
    model = read(config | {'text_config': text | sizes | turned}).model
    assert [isinstance(kind.position, RoPE) for kind in model.layer_kinds] == [False, True] * 2
    other = {'layer_rope_theta': [0, 500.0, 0, 500.0]}
    with pytest.raises(ValueError, match=r'layer_rope_theta is .*; accepted: 0, or rope_theta'):
        read(config | {'text_config': text | sizes | other})
