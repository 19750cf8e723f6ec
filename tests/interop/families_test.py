from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from nope.interop.families import FAMILIES, Described, Family, family_of, writer_of
from nope.interop.mapping import Tensor
from nope.model import LayerKind, ModelConfig, counts
from nope.positions import (
    Alibi,
    ByParts,
    DynamicYarn,
    Learned,
    Linear,
    NoPE,
    Position,
    Rotary,
    Sinusoidal,
    TemperedNoPE,
    Yarn,
)
from nope.variables import abstract_variables
from tests import tiny

NONE: frozenset[str] = frozenset()
BY_NAME = {family.name: family for family in FAMILIES}
ROTARY = Rotary(500.0)
HALF_WINDOWS = (LayerKind(ROTARY, 5), LayerKind(ROTARY))
HYBRID = (LayerKind(ROTARY, 5), LayerKind())
BIASES = {'qkv_bias': True, 'output_bias': True, 'mlp_bias': True}

_DECODER: dict[str, Any] = {
    'layers': 3,
    'width': 24,
    'heads': 4,
    'kv_heads': 2,
    'mlp_width': 20,
    'vocab_size': 40,
    'head_dim': 6,
}
_UNIFORM: dict[str, Any] = {
    **_DECODER,
    'kv_heads': 4,
    'mlp_width': 96,
    'position': Alibi(),
    'norm': 'layer',
    'mlp': 'plain',
    'tied_head': True,
}


def decoder(**changes: Any) -> ModelConfig:
    return ModelConfig(**{**_DECODER, **changes})


def bloom(**changes: Any) -> ModelConfig:
    own = {**BIASES, 'norm_bias': True, 'embedding_norm': True, 'activation': 'gelu_tanh'}
    return ModelConfig(**{**_UNIFORM, **own, **changes})


def mpt(**changes: Any) -> ModelConfig:
    return ModelConfig(**{**_UNIFORM, 'activation': 'gelu', **changes})


def beside(**changes: Any) -> ModelConfig:
    """Attention and MLP side by side, a window where layers turn."""
    own = {'norm': 'layer', 'block': 'parallel', 'tied_head': True}
    kinds = {} if 'position' in changes else {'pattern': HYBRID}
    return decoder(**{**own, **kinds, **changes})


def behind(**changes: Any) -> ModelConfig:
    """Norms behind attention and MLP."""
    own = {'block': 'post', 'qk_norm': True, 'qk_norm_over': 'projection', 'position': ROTARY}
    if 'pattern' in changes:
        del own['position']
    return decoder(**{**own, **changes})


def both_ends(**changes: Any) -> ModelConfig:
    """Norms at both ends of attention and MLP."""
    own = {'block': 'both', 'qk_norm': True, 'norm_offset': True, 'embedding_multiplier': 24**0.5}
    return behind(qk_norm_over='head', **{**own, **changes})


# The family that writes each model; every one comes back as it was.
WRITTEN: dict[str, tuple[str, ModelConfig]] = {
    'rotary': ('llama', decoder(position=ROTARY)),
    'wide heads and biases': (
        'llama',
        decoder(position=ROTARY, head_dim=10, activation='gelu', tied_head=True, **BIASES),
    ),
    'scaled rotary': ('llama', decoder(position=Rotary(1e4, Yarn(4.0, 16)), activation='relu')),
    'uneven heads': ('mistral', decoder(position=ROTARY, width=26)),
    'window': ('mistral', decoder(position=ROTARY, window=5, activation='gelu_tanh')),
    'some biases': ('qwen2', decoder(position=ROTARY, qkv_bias=True)),
    'some biases and windows': (
        'qwen2',
        decoder(qkv_bias=True, pattern=(LayerKind(ROTARY), LayerKind(ROTARY, 5))),
    ),
    'QK-norm': ('qwen3', decoder(position=ROTARY, qk_norm=True, head_dim=8)),
    'QK-norm, biases and windows': (
        'qwen3',
        decoder(
            qk_norm=True,
            qkv_bias=True,
            output_bias=True,
            pattern=(LayerKind(ROTARY, 5), LayerKind(ROTARY, 5), LayerKind(ROTARY)),
        ),
    ),
    'no positions': ('smollm3', decoder()),
    'no positions, window': ('smollm3', decoder(window=7, tied_head=True, **BIASES)),
    'some rotary': ('smollm3', decoder(pattern=(LayerKind(ROTARY), LayerKind()))),
    'some rotary and windows': (
        'smollm3',
        decoder(pattern=(LayerKind(ROTARY, 5), LayerKind(ROTARY), LayerKind(NoPE(), 5))),
    ),
    'some windows': ('smollm3', decoder(pattern=(LayerKind(ROTARY, 5), LayerKind(ROTARY)))),
    'side by side': ('cohere2', beside(logit_multiplier=0.25)),
    'side by side, biases, a head, scaled rotary': (
        'cohere2',
        beside(
            qkv_bias=True,
            output_bias=True,
            tied_head=False,
            pattern=(LayerKind(), LayerKind(Rotary(1e4, Linear(4.0)), 7)),
        ),
    ),
    'side by side, no positions': ('cohere2', beside(position=NoPE())),
    'side by side, all windows': ('cohere2', beside(position=ROTARY, window=5)),
    'norms behind': ('olmo2', behind()),
    'norms behind, biases, tied': (
        'olmo2',
        behind(qkv_bias=True, output_bias=True, tied_head=True, position=Rotary(1e4, Linear(2.0))),
    ),
    'norms behind, windows': (
        'olmo3',
        behind(pattern=(LayerKind(ROTARY, 5), LayerKind(ROTARY, 5), LayerKind(ROTARY))),
    ),
    'norms behind, scaled in some layers': (
        'olmo3',
        behind(pattern=(LayerKind(ROTARY, 5), LayerKind(Rotary(500_000.0, Linear(4.0))))),
    ),
    'norms behind, scaled in some layers, one base': (
        'olmo3',
        behind(pattern=(LayerKind(Rotary(5e5), 5), LayerKind(Rotary(5e5, Linear(4.0))))),
    ),
    'norms behind, two bases': (
        'olmo3',
        behind(pattern=(LayerKind(Rotary(1e4), 5), LayerKind(Rotary(2e4, Linear(4.0))))),
    ),
    'norms behind, all windows': ('olmo3', behind(position=Rotary(1e4), window=5)),
    'norms behind and of each head': ('exaone4', behind(qk_norm_over='head')),
    'norms behind and of each head, hybrid': (
        'exaone4',
        behind(qk_norm_over='head', pattern=(*(LayerKind(ROTARY, 5),) * 2, LayerKind())),
    ),
    'norms behind and of each head, no positions': (
        'exaone4',
        behind(qk_norm_over='head', position=NoPE(), tied_head=True),
    ),
    'norms behind and of each head, all windows': (
        'exaone4',
        behind(qk_norm_over='head', position=Rotary(1e4), window=5),
    ),
    'growing queries': ('ministral3', decoder(position=Rotary(1e4, rate=0.1, span=7), window=5)),
    'growing queries, scaled': (
        'ministral3',
        decoder(position=Rotary(1e6, Yarn(16.0, 32, multiplier=1.5), rate=0.1, span=32)),
    ),
    'norms at both ends': ('gemma3_text', both_ends(softmax_scale=7**-0.5, tied_head=True)),
    'norms at both ends, windows': (
        'gemma3_text',
        both_ends(
            activation='gelu_tanh',
            qkv_bias=True,
            output_bias=True,
            pattern=(LayerKind(ROTARY, 5), LayerKind(Rotary(1e6, Linear(8.0)))),
        ),
    ),
    'norms at both ends, all windows': ('gemma3_text', both_ends(position=Rotary(2e4), window=5)),
    'BLOOM': ('bloom', bloom()),
    'BLOOM with a head': ('bloom', bloom(tied_head=False, norm_epsilon=1e-6)),
    'MPT': ('mpt', mpt()),
    'MPT with a head and a scale': ('mpt', mpt(tied_head=False, softmax_scale=0.3)),
}
# Where it is not a decoder of Llama's kind.
OF_FAMILY = {
    'bloom': bloom(),
    'mpt': mpt(),
    'cohere2': beside(),
    'olmo2': behind(),
    'olmo3': behind(pattern=HALF_WINDOWS),
    'ministral3': decoder(position=Rotary(1e6, ByParts(16.0, 32), rate=0.1, span=32)),
    'gemma3_text': both_ends(pattern=HALF_WINDOWS),
    'exaone4': behind(qk_norm_over='head', pattern=HYBRID),
}
CASES = [*WRITTEN.values(), ('lit-gpt', decoder(position=ROTARY))]


@functools.cache
def parameters_of(config: ModelConfig) -> dict[tuple[str, ...], tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(abstract_variables(config, tiny.mesh())['params'])
    return {tuple(key.key for key in path): leaf.shape for path, leaf in leaves}


def described(config: ModelConfig, **facts: Any) -> Described:
    return Described(config, **{'train_length': 16, **facts})


def written(family: str, about: Described) -> dict[str, Any]:
    """config.json, as it is read from a file."""
    return json.loads(json.dumps(BY_NAME[family].write_config(about.model, about)))


def read(config: dict[str, Any], names: frozenset[str] = NONE) -> Described:
    return family_of(config, names).read_config(config, names)


def draw(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    assert actual.tobytes() == expected.tobytes()


def by_name(tensors: list[Tensor]) -> dict[str, tuple[int, ...]]:
    assert len({tensor.name for tensor in tensors}) == len(tensors)
    return {tensor.name: tensor.shape for tensor in tensors}


# Tensors


@pytest.mark.parametrize(('family', 'config'), CASES)
def test_tensors_hold_every_parameter_once(family: str, config: ModelConfig) -> None:
    wanted = parameters_of(config)
    tensors = BY_NAME[family].tensors(config, NONE)
    found = [(part.path, part.layer) for tensor in tensors for part in tensor.parts]
    expected = [
        (path, layer)
        for path in wanted
        for layer in (range(config.layers) if path[0] == 'layers' else [None])
    ]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert sum(math.prod(tensor.shape) for tensor in tensors) == counts.parameters(config)


@pytest.mark.parametrize('dtype', [np.float32, ml_dtypes.bfloat16], ids=['float32', 'bfloat16'])
@pytest.mark.parametrize(('family', 'config'), CASES)
def test_tensors_come_apart_and_together_bit_for_bit(
    family: str, config: ModelConfig, dtype: Any
) -> None:
    shapes = parameters_of(config)
    for tensor in BY_NAME[family].tensors(config, NONE):
        if re.search(r'\.[12]\.', tensor.name):
            continue  # layers have the same layouts
        array = draw(tensor.shape, dtype)
        parts = tensor.layout.split(array)
        for part, piece in zip(tensor.parts, parts, strict=True):
            assert piece.shape == shapes[part.path][0 if part.layer is None else 1 :]
        assert_same(tensor.layout.join(parts), array)
        for piece, again in zip(parts, tensor.layout.split(tensor.layout.join(parts)), strict=True):
            assert_same(again, piece)


@pytest.mark.parametrize('prefix', ['model.', ''])
@pytest.mark.parametrize(
    'family', ['llama', 'mistral', 'qwen2', 'qwen3', 'smollm3', 'cohere2', 'olmo2', 'olmo3']
)
def test_decoder_names_follow_the_file(family: str, prefix: str) -> None:
    config = decoder(position=ROTARY)
    own = by_name(BY_NAME[family].tensors(config, NONE))
    names = frozenset(re.sub('^model.', prefix, name) for name in own)
    assert frozenset(by_name(BY_NAME[family].tensors(config, names))) == names


@pytest.mark.parametrize(('family', 'config'), [('bloom', bloom()), ('mpt', mpt())])
def test_uniform_names_follow_the_file(family: str, config: ModelConfig) -> None:
    own = by_name(BY_NAME[family].tensors(config, NONE))
    assert all(name.startswith('transformer.') for name in own)
    names = frozenset(name.removeprefix('transformer.') for name in own)
    assert frozenset(by_name(BY_NAME[family].tensors(config, names))) == names


@pytest.mark.parametrize('family', ['llama', 'qwen3'])
def test_lambda_of_all_layers_is_wanted_where_a_file_has_one(family: str) -> None:
    config, name = decoder(position=ROTARY), 'model.layers.1.self_attn.scale_param'
    assert name not in by_name(BY_NAME[family].tensors(config, NONE))
    tensors = BY_NAME[family].tensors(config, frozenset({name, 'model.embed_tokens.weight'}))
    found = {t.name: t for t in tensors if t.name.endswith('scale_param')}
    assert sorted(found) == [f'model.layers.{i}.self_attn.scale_param' for i in range(3)]
    (part,) = found[name].parts
    assert (part.path, part.layer, found[name].shape) == (('lam',), 1, (4,))
    array = draw((4,), np.float32)
    assert_same(found[name].layout.split(array)[0], array)


@pytest.mark.parametrize(
    ('family', 'config', 'name'),
    [
        ('llama', decoder(), 'model.layers.11.self_attn.rotary_emb.inv_freq'),
        ('llama', decoder(), 'layers.0.self_attn.rotary_emb.inv_freq'),
        ('mistral', decoder(), 'model.rotary_emb.inv_freq'),
        ('smollm3', decoder(tied_head=True), 'lm_head.weight'),
        ('bloom', bloom(), 'lm_head.weight'),
        ('mpt', mpt(), 'lm_head.weight'),
    ],
)
def test_what_is_left_out_has_a_reason(family: str, config: ModelConfig, name: str) -> None:
    (rule,) = (i for i in BY_NAME[family].ignored(config) if i.pattern.fullmatch(name))
    assert rule.reason
    assert name not in by_name(BY_NAME[family].tensors(config, NONE))


@pytest.mark.parametrize('family', FAMILIES, ids=lambda family: family.name)
def test_a_head_of_its_own_is_never_left_out(family: Family) -> None:
    config = bloom(tied_head=False) if family.name == 'bloom' else decoder(position=ROTARY)
    assert by_name(family.tensors(config, NONE))['lm_head.weight'] == (40, 24)
    assert not any(rule.pattern.fullmatch('lm_head.weight') for rule in family.ignored(config))


# Published sizes

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
SMOLLM3_3B: dict[str, Any] = {
    'model_type': 'smollm3',
    'hidden_size': 2048,
    'intermediate_size': 11008,
    'num_hidden_layers': 36,
    'num_attention_heads': 16,
    'num_key_value_heads': 4,
    'no_rope_layer_interval': 4,
    'vocab_size': 128256,
}
LIT_NAMES = frozenset({'transformer.h.0.attn.attn.weight'})

LLAMA_LAYER = {
    'input_layernorm.weight': (2048,),
    'self_attn.q_proj.weight': (2048, 2048),
    'self_attn.k_proj.weight': (256, 2048),
    'self_attn.v_proj.weight': (256, 2048),
    'self_attn.o_proj.weight': (2048, 2048),
    'post_attention_layernorm.weight': (2048,),
    'mlp.gate_proj.weight': (5632, 2048),
    'mlp.up_proj.weight': (5632, 2048),
    'mlp.down_proj.weight': (2048, 5632),
}
LIT_LAYER = {
    'norm_1.weight': (2048,),
    'attn.attn.weight': (2560, 2048),
    'attn.proj.weight': (2048, 2048),
    'norm_2.weight': (2048,),
    'mlp.swiglu.w1.weight': (5632, 2048),
    'mlp.swiglu.w2.weight': (5632, 2048),
    'mlp.swiglu.w3.weight': (2048, 5632),
}
BLOOM_LAYER = {
    'input_layernorm.weight': (1536,),
    'input_layernorm.bias': (1536,),
    'self_attention.query_key_value.weight': (4608, 1536),
    'self_attention.query_key_value.bias': (4608,),
    'self_attention.dense.weight': (1536, 1536),
    'self_attention.dense.bias': (1536,),
    'post_attention_layernorm.weight': (1536,),
    'post_attention_layernorm.bias': (1536,),
    'mlp.dense_h_to_4h.weight': (6144, 1536),
    'mlp.dense_h_to_4h.bias': (6144,),
    'mlp.dense_4h_to_h.weight': (1536, 6144),
    'mlp.dense_4h_to_h.bias': (1536,),
}
MPT_LAYER = {
    'norm_1.weight': (4096,),
    'attn.Wqkv.weight': (12288, 4096),
    'attn.out_proj.weight': (4096, 4096),
    'norm_2.weight': (4096,),
    'ffn.up_proj.weight': (16384, 4096),
    'ffn.down_proj.weight': (4096, 16384),
}
LLAMA_OUTSIDE = {
    'model.embed_tokens.weight': (32000, 2048),
    'model.norm.weight': (2048,),
    'lm_head.weight': (32000, 2048),
}
LIT_OUTSIDE = {
    'transformer.wte.weight': (32000, 2048),
    'transformer.ln_f.weight': (2048,),
    'lm_head.weight': (32000, 2048),
}
BLOOM_OUTSIDE = {
    'transformer.word_embeddings.weight': (250880, 1536),
    'transformer.word_embeddings_layernorm.weight': (1536,),
    'transformer.word_embeddings_layernorm.bias': (1536,),
    'transformer.ln_f.weight': (1536,),
    'transformer.ln_f.bias': (1536,),
}
MPT_OUTSIDE = {'transformer.wte.weight': (50432, 4096), 'transformer.norm_f.weight': (4096,)}


@pytest.mark.parametrize(
    ('config', 'names', 'prefix', 'layer', 'outside', 'parameters'),
    [
        (TINYLLAMA, NONE, 'model.layers.', LLAMA_LAYER, LLAMA_OUTSIDE, 1_100_048_384),
        (TINYLLAMA, LIT_NAMES, 'transformer.h.', LIT_LAYER, LIT_OUTSIDE, 1_100_048_384),
        (LIT_TINYLLAMA, LIT_NAMES, 'transformer.h.', LIT_LAYER, LIT_OUTSIDE, 1_100_048_384),
        (BLOOM_1B1, NONE, 'transformer.h.', BLOOM_LAYER, BLOOM_OUTSIDE, 1_065_314_304),
        (MPT_7B, NONE, 'transformer.blocks.', MPT_LAYER, MPT_OUTSIDE, 6_649_286_656),
    ],
    ids=['TinyLlama', 'lit-gpt', 'lit-gpt of its own', 'BLOOM', 'MPT'],
)
def test_published_sizes(
    config: dict, names: frozenset, prefix: str, layer: dict, outside: dict, parameters: int
) -> None:
    model = read(config, names).model
    expected = outside | {
        f'{prefix}{i}.{name}': shape for i in range(model.layers) for name, shape in layer.items()
    }
    tensors = family_of(config, names).tensors(model, names)
    assert by_name(tensors) == expected
    assert (
        counts.parameters(model) == sum(math.prod(tensor.shape) for tensor in tensors) == parameters
    )


def test_published_models_are_what_they_are() -> None:
    tinyllama = dataclasses.replace(tiny.TINYLLAMA, position=Rotary())
    facts = described(tinyllama, train_length=2048, bos=1, eos=2)
    assert read(TINYLLAMA) == read(TINYLLAMA, LIT_NAMES) == facts
    assert read(LIT_TINYLLAMA, LIT_NAMES) == Described(tinyllama, 2048)
    sizes = {'layers': 24, 'width': 1536, 'heads': 16, 'kv_heads': 16, 'head_dim': 96}
    model = bloom(**sizes, mlp_width=6144, vocab_size=250_880)
    assert read(BLOOM_1B1) == described(model, train_length=2048, bos=1, eos=2)
    sizes = {'layers': 32, 'width': 4096, 'heads': 32, 'kv_heads': 32, 'head_dim': 128}
    model = mpt(**sizes, mlp_width=16_384, vocab_size=50_432)
    assert read(MPT_7B) == described(model, train_length=2048, dtype='bfloat16')


def test_smollm3_has_no_rotary_positions_in_every_fourth_layer() -> None:
    model = read(SMOLLM3_3B).model
    rotary = LayerKind(Rotary(2e6))
    assert model.pattern == (rotary, rotary, rotary, LayerKind())
    assert model.tied_head and model.norm_epsilon == 1e-6
    assert counts.parameters(model) == 3_075_098_624


# Fused rows


def rows_of(tensor: Tensor) -> list[np.ndarray]:
    """Of a fused weight, which row every query, key and value is, [heads, H] each."""
    numbered = np.broadcast_to(np.arange(tensor.shape[0])[:, None], tensor.shape)
    return [piece[0] for piece in tensor.layout.split(numbered)]


def test_fused_rows_of_lit_gpt_go_by_group() -> None:
    config = dataclasses.replace(tiny.TINYLLAMA, layers=1)
    (tensor,) = (t for t in BY_NAME['lit-gpt'].tensors(config, NONE) if t.name in LIT_NAMES)
    q, k, v = rows_of(tensor)
    head, group, within = np.arange(32)[:, None], np.arange(4)[:, None], np.arange(64)
    np.testing.assert_array_equal(q, 640 * (head // 8) + 64 * (head % 8) + within)
    np.testing.assert_array_equal(k, 640 * group + 512 + within)
    np.testing.assert_array_equal(v, 640 * group + 576 + within)


@pytest.mark.parametrize('kind', ['weight', 'bias'])
def test_fused_rows_of_bloom_go_by_head(kind: str) -> None:
    config = bloom(layers=1)
    tensors = {t.name: t for t in BY_NAME['bloom'].tensors(config, NONE)}
    tensor = tensors[f'transformer.h.0.self_attention.query_key_value.{kind}']
    pieces = tensor.layout.split(np.arange(72)) if kind == 'bias' else rows_of(tensor)
    head, within = np.arange(4)[:, None], np.arange(6)
    for part, found in enumerate(pieces):
        np.testing.assert_array_equal(found, 18 * head + 6 * part + within)


def test_fused_rows_of_mpt_are_queries_then_keys_then_values() -> None:
    tensors = {t.name: t for t in BY_NAME['mpt'].tensors(mpt(layers=1), NONE)}
    pieces = rows_of(tensors['transformer.blocks.0.attn.Wqkv.weight'])
    for part, found in enumerate(pieces):
        np.testing.assert_array_equal(found.reshape(-1), 24 * part + np.arange(24))


def test_rotary_pairs_of_neighbours_become_halves() -> None:
    """In the rows of queries and keys, and in no others."""
    config = beside(qkv_bias=True, output_bias=True)
    tensors = {t.name: t for t in BY_NAME['cohere2'].tensors(config, NONE)}
    for letter, heads in (('q', 4), ('k', 2), ('v', 2)):
        stem = f'model.layers.0.self_attn.{letter}_proj'
        within = np.array([0, 2, 4, 1, 3, 5]) if letter != 'v' else np.arange(6)
        expected = 6 * np.arange(heads)[:, None] + within
        (rows,) = rows_of(tensors[f'{stem}.weight'])
        np.testing.assert_array_equal(rows, expected)
        (bias,) = tensors[f'{stem}.bias'].layout.split(np.arange(6 * heads))
        np.testing.assert_array_equal(bias, expected)


# Configs


@pytest.mark.parametrize('case', WRITTEN)
@pytest.mark.parametrize('train_length', [16, None])
def test_a_written_config_is_read_as_the_same_model(case: str, train_length: int | None) -> None:
    name, config = WRITTEN[case]
    assert writer_of(config).name == name
    known = getattr(config.position, 'scaling', None)
    length = getattr(known, 'train_length', train_length)
    about = described(config, train_length=length, dtype='bfloat16', bos=3, eos=None)
    assert read(written(name, about)) == about


@pytest.mark.parametrize('case', WRITTEN)
def test_a_written_config_says_what_it_is(case: str) -> None:
    name, config = WRITTEN[case]
    found = written(name, described(config))
    assert found['model_type'] == name
    (architecture,) = found['architectures']
    assert architecture.lower() == f'{name.removesuffix("_text")}forcausallm'
    # Stock classes would take a token of their own vocabulary.
    assert found['pad_token_id'] is None


def test_how_a_model_runs_is_no_part_of_it() -> None:
    config = decoder(
        position=ROTARY, dtype='bfloat16', remat='full', unroll=None, attention='chunked'
    )
    assert read(written('llama', described(config))).model == decoder(position=ROTARY)


def test_patterns_are_read_at_their_shortest() -> None:
    turns = (LayerKind(ROTARY), LayerKind())
    long = decoder(layers=5, pattern=(*turns, *turns))
    assert read(written('smollm3', described(long))).model.pattern == turns
    alike = decoder(pattern=(LayerKind(ROTARY), LayerKind(ROTARY)))
    assert writer_of(alike).name == 'llama'
    assert read(written('llama', described(alike))).model == decoder(position=ROTARY)


@pytest.mark.parametrize(
    ('family', 'changes', 'expected'),
    [
        ('llama', {'num_key_value_heads': None, 'head_dim': None}, {'kv_heads': 4, 'head_dim': 6}),
        ('llama', {'hidden_act': 'gelu_new'}, {'activation': 'gelu_tanh'}),
        ('llama', {'hidden_act': 'swish'}, {'activation': 'silu'}),
        ('llama', {'layer_types': ['full_attention'] * 3}, {}),
        ('llama', {'pretraining_tp': 2, 'attention_dropout': 0.1, 'sliding_window': None}, {}),
        ('mistral', {'sliding_window': 7}, {'window': 7}),
        ('mistral', {'sliding_window': None}, {'window': None}),
        ('mistral', {'layer_types': ['full_attention'] * 3}, {}),
        ('qwen2', {'attention_bias': True}, {}),
        ('qwen2', {'sliding_window': 7, 'use_sliding_window': False}, {'window': None}),
        (
            'qwen3',
            {'sliding_window': 7, 'use_sliding_window': True, 'max_window_layers': 0},
            {'window': 7, 'position': ROTARY},
        ),
        (
            'qwen3',
            {'sliding_window': 7, 'use_sliding_window': True, 'max_window_layers': 2},
            {'pattern': (LayerKind(ROTARY), LayerKind(ROTARY), LayerKind(ROTARY, 7))},
        ),
        ('smollm3', {'no_rope_layers': [0, 0, 0]}, {'position': NoPE(), 'pattern': ()}),
        ('smollm3', {'no_rope_layers': [1, 1, 1, 0]}, {'position': ROTARY}),
        ('smollm3', {'no_rope_layers': None, 'no_rope_layer_interval': 1}, {'position': NoPE()}),
        (
            'smollm3',
            {'no_rope_layers': None, 'no_rope_layer_interval': 2},
            {'pattern': (LayerKind(ROTARY), LayerKind())},
        ),
        (
            'smollm3',
            {'no_rope_layers': [1, 0, 1], 'use_sliding_window': True, 'sliding_window': 7},
            {'pattern': (LayerKind(ROTARY), LayerKind(NoPE(), 7))},
        ),
        ('cohere2', {}, {'pattern': HYBRID, 'logit_multiplier': 1.0}),
        (
            'cohere2',
            {'layer_types': None, 'sliding_window_pattern': 2, 'logit_scale': None},
            {'pattern': HYBRID, 'logit_multiplier': 0.0625},
        ),
        ('cohere2', {'layer_types': None}, {'position': ROTARY, 'window': 5}),
        (
            'cohere2',
            {'layer_types': None, 'sliding_window_pattern': 1},
            {'position': NoPE(), 'pattern': ()},
        ),
        ('cohere2', {'tie_word_embeddings': None}, {'tied_head': True}),
        ('olmo2', {'use_qk_norm': True}, {'qk_norm': True, 'qk_norm_over': 'projection'}),
        (
            'olmo3',
            {'rope_parameters': None, 'layer_types': None, 'sliding_window': 7},
            {'position': Rotary(5e5), 'window': 7},
        ),
        (
            'olmo3',
            {'rope_parameters': None, 'rope_scaling': {'type': 'linear', 'factor': 2.0}},
            {'pattern': (LayerKind(Rotary(5e5), 5), LayerKind(Rotary(5e5, Linear(2.0))))},
        ),
        (
            'olmo3',
            {'rope_parameters': {'full_attention': {'rope_theta': 7.0}}},
            {'pattern': (LayerKind(Rotary(5e5), 5), LayerKind(Rotary(7.0)))},
        ),
        ('exaone4', {}, {'pattern': HYBRID}),
        (
            'exaone4',
            {'layer_types': None, 'sliding_window_pattern': 2},
            {'pattern': HYBRID},
        ),
        (
            'exaone4',
            {'layer_types': ['full_attention'] * 3},
            {'position': NoPE(), 'window': None, 'pattern': ()},
        ),
        (
            'exaone4',
            {'layer_types': ['full_attention'] * 3, 'sliding_window': None},
            {'position': ROTARY, 'window': None, 'pattern': ()},
        ),
        (
            'exaone4',
            {'layer_types': None, 'sliding_window': None, 'sliding_window_pattern': None},
            {'position': ROTARY, 'window': None, 'pattern': ()},
        ),
        (
            'ministral3',
            {'rope_parameters': None, 'num_key_value_heads': 2},
            {'position': Rotary(1e6, ByParts(16.0, 16_384), rate=0.1), 'window': None},
        ),
        (
            'ministral3',
            {
                'rope_parameters': {
                    'original_max_position_embeddings': 9,
                    'llama_4_scaling_beta': 0.0,
                }
            },
            {'position': Rotary()},
        ),
        ('gemma3_text', {'query_pre_attn_scalar': 6}, {'softmax_scale': None}),
        ('gemma3_text', {'query_pre_attn_scalar': None}, {'softmax_scale': 0.0625}),
        ('gemma3_text', {'hidden_activation': None}, {'activation': 'gelu_tanh'}),
        (
            'gemma3_text',
            {'rope_local_base_freq': None, 'layer_types': None},
            {'position': Rotary(), 'window': 5},
        ),
        (
            'gemma3_text',
            {'layer_types': None, 'sliding_window_pattern': 2},
            {'pattern': HALF_WINDOWS},
        ),
        ('bloom', {'slow_but_exact': True, 'pretraining_tp': 2, 'n_inner': 96}, {}),
        ('bloom', {'hidden_size': None, 'n_embed': 24}, {}),
        ('mpt', {'attn_config': None}, {'softmax_scale': None}),
        ('mpt', {'attn_config': {'softmax_scale': 0.25}}, {'softmax_scale': 0.25}),
        ('mpt', {'norm_type': 'layernorm', 'learned_pos_emb': True, 'verbose': 1}, {}),
    ],
)
def test_keys_are_understood(family: str, changes: dict, expected: dict) -> None:
    model = OF_FAMILY.get(family, decoder(position=ROTARY))
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
    assert (qwen3.kv_heads, qwen3.head_dim, qwen3.position) == (32, 128, Rotary())


@pytest.mark.parametrize(
    ('changes', 'position'),
    [
        ({'rotary_percentage': 0.0}, NoPE()),
        ({'rotary_percentage': 0.25}, Rotary(dims=16)),
        ({'condense_ratio': 4}, Rotary(scaling=Linear(4.0))),
        ({'rope_condense_ratio': 1, 'condense_ratio': None, 'rope_base': 500}, Rotary(500.0)),
    ],
)
def test_positions_of_lit_gpt(changes: dict, position: Position) -> None:
    assert read({**LIT_TINYLLAMA, **changes}, LIT_NAMES).model.position == position


@pytest.mark.parametrize(
    ('changes', 'facts'),
    [
        ({'torch_dtype': 'torch.float16'}, {'dtype': 'float16'}),
        ({'torch_dtype': None, 'dtype': 'bfloat16'}, {'dtype': 'bfloat16'}),
        ({'torch_dtype': None}, {'dtype': 'float32'}),
        ({'eos_token_id': [5, 6]}, {'eos': 5}),
        ({'bos_token_id': None, 'eos_token_id': 0}, {'bos': None, 'eos': 0}),
        ({'max_position_embeddings': None}, {'train_length': None}),
    ],
)
def test_facts(changes: dict, facts: dict) -> None:
    found = read({**written('llama', described(decoder(position=ROTARY))), **changes})
    assert {key: getattr(found, key) for key in facts} == facts


# Who is who


@pytest.mark.parametrize(
    ('config', 'names', 'name'),
    [
        ({'model_type': 'llama'}, NONE, 'llama'),
        ({'model_type': 'llama'}, LIT_NAMES, 'lit-gpt'),
        ({'n_layer': 2}, LIT_NAMES, 'lit-gpt'),
        ({'architectures': ['Qwen3ForCausalLM']}, NONE, 'qwen3'),
        ({'model_type': 'mpt', 'architectures': ['MPTForCausalLM']}, NONE, 'mpt'),
    ],
)
def test_a_family_knows_its_own(config: dict, names: frozenset[str], name: str) -> None:
    assert family_of(config, names).name == name


@pytest.mark.parametrize(
    'config',
    [{}, {'model_type': 'gpt2'}, {'model_type': ['llama']}, {'architectures': 'LlamaForCausalLM'}],
)
def test_other_families_are_named(config: dict) -> None:
    with pytest.raises(ValueError) as refusal:
        family_of(config, NONE)
    message = str(refusal.value)
    assert message.startswith('config.json: model_type is ')
    assert all(name in message for name in BY_NAME)
    assert all(str(value).strip("[]'") in message for value in config.values())


@pytest.mark.parametrize(
    ('config', 'reason'),
    [
        (decoder(position=Learned(8)), 'learned'),
        (decoder(position=Sinusoidal()), 'sinusoidal'),
        (decoder(position=Alibi()), 'ALiBi'),
        (decoder(position=TemperedNoPE()), 'tempered'),
        (decoder(position=Rotary(scaling=DynamicYarn())), 'DynamicYarn'),
        (decoder(position=Rotary(interleaved=True)), 'neighbours'),
        (decoder(position=Rotary(dims=4)), '4 of 6'),
        (decoder(pattern=(LayerKind(ROTARY), LayerKind(Rotary()))), 'one rotary encoding'),
        (decoder(pattern=(LayerKind(ROTARY, 3), LayerKind(ROTARY, 4))), '[3, 4]'),
        (
            decoder(pattern=(LayerKind(ROTARY), LayerKind(ROTARY, qk_norm=False)), qk_norm=True),
            'some of its layers have no QK-norm',
        ),
        (decoder(pattern=(LayerKind(ROTARY, chunk=4), LayerKind())), 'chunks of 4'),
        (decoder(position=ROTARY, position_range=64), 'spread over 64'),
        (decoder(head_dim=5), 'head_dim is 5'),
        (decoder(qk_norm=True), 'rotary'),
        (decoder(position=ROTARY, output_bias=True), 'output_bias'),
        (decoder(position=ROTARY, norm='layer'), 'norm is'),
        (decoder(position=ROTARY, mlp='plain'), 'mlp is'),
        (decoder(position=ROTARY, softmax_scale=0.5), 'softmax_scale is 0.5'),
        (decoder(position=ROTARY, logit_multiplier=0.5), 'logit_multiplier is 0.5'),
        (decoder(position=ROTARY, embedding_norm=True), 'embedding_norm is True'),
        (decoder(position=ROTARY, block='post', norm='layer'), 'block is'),
        (beside(position=ROTARY), 'those with rotary positions have a window'),
        (beside(position=NoPE(), window=5), 'those with rotary positions have a window'),
        (beside(pattern=(LayerKind(ROTARY, 5), LayerKind(Rotary(), 5))), 'one rotary encoding'),
        (beside(pattern=(LayerKind(ROTARY, 5), LayerKind(ROTARY, 6))), '[5, 6]'),
        (beside(qk_norm=True), 'qk_norm is True'),
        (beside(mlp_bias=True), 'mlp_bias is True'),
        (behind(position=NoPE()), 'not one rotary encoding'),
        (behind(pattern=(LayerKind(ROTARY, 5), LayerKind(NoPE()))), 'a window and one without'),
        (
            behind(pattern=(LayerKind(ROTARY, 5), LayerKind(Rotary(), 5))),
            'not one rotary encoding with a window',
        ),
        (
            behind(pattern=(LayerKind(Rotary(1e4, Linear(2.0)), 5), LayerKind(ROTARY))),
            'with a window have rotary',
        ),
        (behind(pattern=(LayerKind(ROTARY, 5), LayerKind(ROTARY, 6))), '[5, 6]'),
        (
            behind(qk_norm_over='head', pattern=(LayerKind(ROTARY, 5), LayerKind(ROTARY))),
            'those with rotary positions have a window',
        ),
        (
            behind(qk_norm_over='head', pattern=(LayerKind(ROTARY), LayerKind())),
            'those with rotary positions have a window',
        ),
        (behind(qk_norm_over='head', qkv_bias=True), 'qkv_bias is True'),
        (
            decoder(position=Rotary(1e6, ByParts(16.0, 32), rate=0.1, span=16)),
            'spans of 16, and its scaling is from 32',
        ),
        (decoder(pattern=(LayerKind(Rotary(rate=0.1)), LayerKind())), 'grow by position'),
        (both_ends(embedding_multiplier=4.0), 'its embeddings are multiplied by 4'),
        (both_ends(softmax_scale=0.3), 'softmax_scale is 0.3, not 1 / sqrt of a whole number'),
        (both_ends(norm_offset=False), 'norm_offset is False'),
        (both_ends(position=NoPE()), 'not one rotary encoding'),
        (bloom(position=Alibi(4.0)), 'ALiBi'),
        (bloom(window=3), 'window 3'),
        (bloom(kv_heads=2), 'kv_heads is 2'),
        (bloom(mlp_width=95), 'mlp_width is 95'),
        (bloom(head_dim=8), 'head_dim is 8'),
        (mpt(norm_bias=True), 'norm_bias is True'),
        (mpt(activation='relu'), 'activation'),
    ],
)
def test_what_no_stock_class_computes_is_not_written(config: ModelConfig, reason: str) -> None:
    with pytest.raises(ValueError) as refusal:
        writer_of(config)
    message = str(refusal.value)
    assert reason in message
    assert all(f'{name}: ' in message for name in BY_NAME)


def test_lit_gpt_is_not_written() -> None:
    config = decoder(position=ROTARY)
    assert BY_NAME['lit-gpt'].unwritable(config)
    with pytest.raises(ValueError, match='only read'):
        BY_NAME['lit-gpt'].write_config(config, described(config))


# Refusals

SLIDING = {'use_sliding_window': True, 'sliding_window': 7}


@pytest.mark.parametrize(
    ('family', 'changes', 'parts'),
    [
        ('llama', {'hidden_act': 'relu2'}, ['hidden_act', 'relu2', 'silu']),
        ('llama', {'hidden_size': 25}, ['hidden_size is 25', '4']),
        ('llama', {'num_key_value_heads': 3}, ['num_key_value_heads is 3', '4']),
        ('llama', {'head_dim': 5}, ['config.json', 'head_dim is 5']),
        ('llama', {'sliding_window': 7}, ['sliding_window is 7', 'null', 'windows']),
        ('llama', {'use_sliding_window': True}, ['use_sliding_window', 'false']),
        ('llama', {'layer_types': ['sliding_attention'] * 3}, ['layer_types', 'full_attention']),
        ('llama', {'no_rope_layers': [0, 1, 1]}, ['no_rope_layers', 'rotary']),
        ('llama', {'rope_interleaved': True}, ['rope_interleaved is True', 'halves']),
        ('llama', {'final_logit_softcapping': 30.0}, ['final_logit_softcapping is 30.0']),
        ('llama', {'use_qk_norm': True}, ['use_qk_norm is True', 'norms']),
        ('llama', {'quantization_config': {'bits': 4}}, ['quantization_config', 'null']),
        ('llama', {'per_layer_config': [{}]}, ['per_layer_config']),
        ('llama', {'torch_dtype': 'int8'}, ['torch_dtype', 'int8', 'bfloat16']),
        ('llama', {'dtype': 'bfloat16', 'torch_dtype': 'float16'}, ['dtype', 'bfloat16']),
        ('llama', {'bos_token_id': 40}, ['bos_token_id is 40', '39']),
        ('llama', {'eos_token_id': [-1]}, ['eos_token_id', '39']),
        ('llama', {'num_hidden_layers': 10**12}, ['num_hidden_layers', '10000']),
        ('llama', {'rms_norm_eps': -1e-6}, ['rms_norm_eps', 'above 0']),
        ('mistral', {'attention_bias': True}, ['attention_bias is True', 'false']),
        ('mistral', {'mlp_bias': True}, ['mlp_bias is True', 'false']),
        ('mistral', {'sliding_window': 0}, ['sliding_window is 0']),
        (
            'mistral',
            {'sliding_window': 7, 'layer_types': ['full_attention'] * 3},
            ['layer_types', 'sliding_attention'],
        ),
        ('qwen2', {'attention_bias': False}, ['attention_bias is False', 'true']),
        ('qwen3', {'layer_types': ['sliding_attention'] * 3}, ['layer_types', 'full_attention']),
        ('qwen3', {**SLIDING, 'layer_types': ['full_attention']}, ['layer_types', '3 layers']),
        ('qwen3', {**SLIDING, 'layer_types': ['chunked_attention'] * 3}, ['layer_types']),
        ('smollm3', {'no_rope_layers': [1, 1]}, ['no_rope_layers', '3 layers']),
        ('smollm3', {'no_rope_layers': [1, 2, 1]}, ['no_rope_layers', '0 and 1']),
        ('smollm3', {'no_rope_layers': [True] * 3}, ['no_rope_layers', '0 and 1']),
        (
            'smollm3',
            {'no_rope_layers': None, 'no_rope_layer_interval': 0},
            ['no_rope_layer_interval is 0'],
        ),
        ('cohere2', {'sliding_window': None}, ['sliding_window is None', 'integer']),
        ('cohere2', {'layer_types': ['full_attention']}, ['layer_types', '3 layers']),
        ('cohere2', {'layer_types': ['rotary'] * 3}, ['layer_types', 'sliding_attention']),
        (
            'cohere2',
            {'layer_types': None, 'sliding_window_pattern': 0},
            ['sliding_window_pattern is 0'],
        ),
        ('cohere2', {'logit_scale': 0}, ['logit_scale is 0', 'above 0']),
        ('cohere2', {'layer_norm_eps': -1.0}, ['layer_norm_eps is -1.0']),
        ('cohere2', {'use_qk_norm': True}, ['use_qk_norm is True', 'false']),
        ('cohere2', {'use_parallel_block': False}, ['use_parallel_block is False', 'true']),
        ('cohere2', {'rotary_pct': 0.5}, ['rotary_pct is 0.5', '1.0']),
        ('cohere2', {'position_embedding_type': 'rope'}, ['position_embedding_type', 'rope_gptj']),
        ('cohere2', {'rope_interleaved': False}, ['rope_interleaved is False', 'neighbouring']),
        ('cohere2', {'mlp_bias': True}, ['mlp_bias is True', 'false']),
        ('olmo2', {'use_qk_norm': False}, ['use_qk_norm is False', 'true']),
        ('olmo2', {'sliding_window': 7}, ['sliding_window is 7', 'windows']),
        ('olmo3', {'sliding_window': None}, ['sliding_window is None', 'integer']),
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
        ('exaone4', {'sliding_window': None}, ['layer_types', 'full_attention only']),
        (
            'exaone4',
            {'layer_types': None, 'sliding_window_pattern': 'LLLG'},
            ['sliding_window_pattern', 'LLLG', 'integer'],
        ),
        ('exaone4', {'attention_bias': True}, ['attention_bias is True', 'false']),
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
            'ministral3',
            {'rope_parameters': {'llama_4_scaling_beta': -0.1}},
            ['rope_parameters.llama_4_scaling_beta is -0.1', 'above 0'],
        ),
        ('ministral3', {'attention_bias': True}, ['attention_bias is True']),
        (
            'llama',
            {'rope_scaling': {'rope_type': 'default', 'llama_4_scaling_beta': 0.1}},
            ['llama_4_scaling_beta'],
        ),
        ('gemma3_text', {'final_logit_softcapping': 30.0}, ['final_logit_softcapping is 30.0']),
        ('gemma3_text', {'attn_logit_softcapping': 50.0}, ['attn_logit_softcapping is 50.0']),
        (
            'gemma3_text',
            {'use_bidirectional_attention': True},
            ['use_bidirectional_attention is True', 'false'],
        ),
        ('gemma3_text', {'query_pre_attn_scalar': 0}, ['query_pre_attn_scalar is 0']),
        ('gemma3_text', {'hidden_activation': 'relu2'}, ['hidden_activation', 'relu2', 'silu']),
        ('gemma3_text', {'rope_local_base_freq': 0.5}, ['rope_local_base_freq is 0.5', 'above 1']),
        (
            'gemma3_text',
            {'rope_parameters': {'full_attention': None}},
            ['rope_theta is 500.0', 'both types of layers'],
        ),
        ('bloom', {'apply_residual_connection_post_layernorm': True}, ['post_layernorm', 'false']),
        ('bloom', {'n_inner': 95}, ['n_inner is 95', '96']),
        ('bloom', {'n_embed': 25}, ['n_embed is 25', 'hidden_size']),
        ('bloom', {'n_head': 5}, ['hidden_size is 24', 'n_head']),
        ('mpt', {'attn_config': {'alibi': False}}, ['attn_config.alibi is False', 'true']),
        ('mpt', {'attn_config': {'alibi_bias_max': 16}}, ['alibi_bias_max is 16', '8']),
        ('mpt', {'attn_config': {'clip_qkv': 6.0}}, ['clip_qkv is 6.0', 'null']),
        ('mpt', {'attn_config': {'qk_ln': True}}, ['qk_ln is True']),
        ('mpt', {'attn_config': {'prefix_lm': True}}, ['prefix_lm is True']),
        ('mpt', {'attn_config': {'rope': True}}, ['rope is True']),
        ('mpt', {'attn_config': {'kv_n_heads': 2}}, ['kv_n_heads is 2', '4']),
        (
            'mpt',
            {'attn_config': {'attn_type': 'multiquery_attention'}},
            ['attn_type', 'multihead_attention'],
        ),
        ('mpt', {'attn_config': {'softmax_scale': 0}}, ['softmax_scale is 0']),
        ('mpt', {'attn_config': [1]}, ['attn_config is [1]', 'object']),
        ('mpt', {'expansion_ratio': 2}, ['expansion_ratio is 2', '4']),
        ('mpt', {'no_bias': False}, ['no_bias is False', 'true']),
        ('mpt', {'logit_scale': 'inv_sqrt_d_model'}, ['logit_scale', 'null']),
        ('mpt', {'norm_type': 'rmsnorm'}, ['norm_type', 'layernorm']),
        ('mpt', {'ffn_config': {'ffn_type': 'mb_dmoe'}}, ['ffn_config.ffn_type', 'mptmlp']),
        ('mpt', {'hidden_size': 25}, ['hidden_size is 25', 'd_model']),
    ],
)
def test_what_cannot_be_honoured_is_refused(family: str, changes: dict, parts: list) -> None:
    model = OF_FAMILY.get(family, decoder(position=ROTARY))
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
    *(None, True, 0, -1, 10**12, 10**5000, 2.5, math.nan, math.inf, -1e308, '', '7', 'a' * 10**5),
    *([], [[]], [1] * 10**5, {}, {'type': []}, {'type': 'yarn', 'factor': 1e300}),
]
UNDER_ATTACK = {
    'llama': (written('llama', described(WRITTEN['scaled rotary'][1])), NONE),
    'mistral': (written('mistral', described(WRITTEN['window'][1])), NONE),
    'qwen3': (written('qwen3', described(WRITTEN['QK-norm, biases and windows'][1])), NONE),
    'smollm3': (written('smollm3', described(WRITTEN['some rotary and windows'][1])), NONE),
    'cohere2': (written('cohere2', described(beside())), NONE),
    'olmo2': (written('olmo2', described(behind())), NONE),
    'olmo3': (written('olmo3', described(behind(pattern=HALF_WINDOWS))), NONE),
    'exaone4': (written('exaone4', described(OF_FAMILY['exaone4'])), NONE),
    'ministral3': (written('ministral3', described(OF_FAMILY['ministral3'])), NONE),
    'gemma3_text': (written('gemma3_text', described(OF_FAMILY['gemma3_text'])), NONE),
    'bloom': (written('bloom', described(bloom())), NONE),
    'mpt': (MPT_7B, NONE),
    'lit-gpt': (LIT_TINYLLAMA, LIT_NAMES),
}


def attacks(config: dict) -> list[tuple[str, dict]]:
    """The key, and the config with something else there or nothing, at all depths."""
    found = []
    for key, value in config.items():
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
