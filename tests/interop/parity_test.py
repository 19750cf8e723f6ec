"""The same weights here and in stock `transformers` on the CPU: the same numbers, both ways."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import flax.traverse_util
import jax
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, PreTrainedModel
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

from nope.interop import Described, Export, describe, fold, open_directory, save
from nope.model import LayerKind, ModelConfig, counts
from nope.model.lam import Form, LogLength
from nope.positions import Alibi, NoPE, Rotary
from nope.variables import Variables, lam_of, with_lam
from tests import tiny
from tests.interop import stock
from tests.interop.stock import LONGEST, TRAINED, VOCAB

TOLERANCE = 2e-4  # absolute, of logits that spread over several units, in float32
NEW_TOKENS = 32
# Ascending: stock's dynamic encodings remember the longest sequence that they have seen.
LENGTHS = (1, 24, TRAINED, TRAINED + 1, 96, LONGEST)
TOKENS = tiny.tokens(2, LONGEST, vocab_size=VOCAB)
PROMPT = TOKENS[:, : TRAINED - 16]  # the continuation goes beyond the length in the config
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
    'llama, wide heads': ('llama', {'head_dim': 24, 'rms_norm_eps': 1e-3}),
    'llama, ungrouped': ('llama', {'num_key_value_heads': 4, 'hidden_act': 'gelu'}),
    'linear': ('llama', rope('linear', factor=2.5)),
    'dynamic': ('llama', rope('dynamic', factor=2.0)),
    'yarn': ('llama', YARN()),
    'yarn, by default': ('llama', rope('yarn', factor=2.5)),
    'yarn, ramp beyond the last pair': ('llama', YARN(rope_theta=4.0)),
    'yarn, attention_factor': ('llama', YARN(attention_factor=1.3)),
    'yarn, factor of the lengths': ('llama', YARN(factor=None)),
    'yarn, mscale': ('llama', YARN(mscale=1.2, mscale_all_dim=0.5)),
    'yarn, not truncated': ('llama', YARN(truncate=False)),
    'longrope': ('llama', LONGROPE()),
    'longrope, factor': ('llama', LONGROPE(factor=4.0)),
    'longrope, attention_factor': ('llama', LONGROPE(attention_factor=1.3)),
    'llama3': ('llama', rope('llama3', factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)),
    'proportional': ('llama', rope('proportional', partial_rotary_factor=0.4)),
    'proportional, factor': (
        'llama',
        rope('proportional', partial_rotary_factor=0.75, factor=2.0),
    ),
    'mistral': ('mistral', {}),
    'mistral, window': ('mistral', {'sliding_window': WINDOW}),
    'qwen2': ('qwen2', {}),
    'qwen3': ('qwen3', {}),
    'qwen3, biases, wide heads': ('qwen3', {'head_dim': 24, 'attention_bias': True}),
    'qwen3, windows': (
        'qwen3',
        {'use_sliding_window': True, 'sliding_window': WINDOW, 'max_window_layers': 2},
    ),
    'smollm3': ('smollm3', {}),
    'smollm3, yarn': ('smollm3', YARN()),
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
    'olmo2, yarn': ('olmo2', YARN()),
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
    'ministral3': (
        'ministral3',
        YARN(mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.5),
    ),
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
    'phi3': ('phi3', {'hidden_act': 'gelu'}),
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
    'bloom': ('bloom', {}),
    'bloom, 6 heads': ('bloom', {'n_head': 6, 'hidden_size': 96}),
    'mpt': ('mpt', {}),
    'mpt, 6 heads': ('mpt', {'n_heads': 6, 'd_model': 96}),
    'mpt, softmax_scale': ('mpt', {'attn_config': {'softmax_scale': 0.4}}),
}
# Variants of families and of ways to extend that others here cover.
ALIKE = (
    'llama, ungrouped', 'yarn, by default', 'yarn, attention_factor', 'yarn, mscale',
    'yarn, not truncated', 'longrope, factor', 'longrope, attention_factor',
    'proportional, factor', 'mistral', 'qwen3', 'smollm3', 'smollm3, yarn', 'cohere2, no positions',
    'olmo2, yarn', 'olmo3', 'exaone4, no positions', 'mpt', 'yarn, factor of the lengths',
    'llama, wide heads', 'bloom', 'gemma3', 'granite', 'phi3', 'gemma4, one shape, no inputs',
)  # fmt: skip
# Of these the frequencies follow the length of the sequence.
FOLLOWING = ('dynamic', 'longrope')


@dataclasses.dataclass(frozen=True)
class Imported:
    """A stock model's folder, and what is read from it."""

    folder: pathlib.Path
    described: Described
    variables: Variables

    @property
    def model(self) -> ModelConfig:
        return self.described.model

    def logits(self, tokens_BT: np.ndarray, *, length: int | None = None) -> np.ndarray:
        return stock.our_logits(self.model, self.variables, tokens_BT, length=length)

    def with_lam(self, lam_LN: np.ndarray) -> Imported:
        placed_LN = jax.device_put(lam_LN, lam_of(self.variables).sharding)
        return dataclasses.replace(self, variables=with_lam(self.variables, placed_LN))


def read(folder: pathlib.Path, **options: Any) -> Imported:
    return Imported(folder, *stock.ours(folder, **options))


@pytest.fixture(scope='module')
def imported(tmp_path_factory) -> Callable[[str], Imported]:
    """The case of that name."""

    @functools.cache
    def case(name: str) -> Imported:
        family, changes = CASES[name]
        return read(stock.save(stock.make(family, **changes), tmp_path_factory.mktemp(family)))

    return case


def follows(name: str) -> bool:
    return name.split(',')[0] in FOLLOWING


def lam_between(low: float, high: float, model: ModelConfig) -> np.ndarray:
    """A coefficient for every layer and head, [L, N] float32."""
    shape = model.layers, model.heads
    return np.random.default_rng(1).uniform(low, high, shape).astype(np.float32)


def assert_same_logits(theirs: PreTrainedModel, found: Imported, **options: Any) -> None:
    """At every length."""
    for length in LENGTHS:
        tokens_BT = TOKENS[:, :length]
        expected = stock.logits(theirs, tokens_BT)
        assert expected.std() > 1
        actual = found.logits(tokens_BT, **options)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE, err_msg=str(length))


def assert_equal_models(actual: Imported, expected: Imported) -> None:
    """The same config, and the same variables bit for bit."""
    assert actual.model == expected.model
    tiny.assert_same(actual.variables, expected.variables)


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ()) for name in CASES
])  # fmt: skip
def test_logits_and_continuations_are_those_of_stock(
    imported: Callable[[str], Imported], name: str
) -> None:
    """Below and beyond the length in the config, which the continuation crosses.

    Frequencies that follow the length do so here for the whole sequence. Stock looks at the
    length of each call: with a cache, earlier keys keep the rotation of the length they were made
    at. It generates without one there, and ours takes the length that each step has.
    """
    found = imported(name)
    theirs = stock.restore(found.folder)
    assert_same_logits(theirs, found)
    expected = stock.generate(theirs, PROMPT, NEW_TOKENS, use_cache=not follows(name))
    actual = stock.greedy(found.model, found.variables, PROMPT, NEW_TOKENS)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize('name', [
    'gemma3', 'gemma4, values from keys, biases, a head, other heads', 'olmo3, two bases',
    'granite', 'phi3, longrope, some dimensions, window, tied',
])  # fmt: skip
def test_entropies_are_those_of_the_weights_of_stock(
    imported: Callable[[str], Imported], name: str
) -> None:
    found = imported(name)
    expected = stock.entropy(stock.restore(found.folder), TOKENS)
    actual = stock.our_entropy(found.model, found.variables, TOKENS)
    assert expected.max() > 2
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE)


def turning_layers(model: PreTrainedModel) -> list[bool]:
    """Of every layer of stock's model, whether its attention is another one without rotation."""
    calls: list[tuple[torch.nn.Module, dict, torch.Tensor]] = []
    hooks = [
        layer.self_attn.register_forward_hook(
            lambda module, args, kwargs, out: calls.append((module, kwargs, out[0])),
            with_kwargs=True,
        )
        for layer in model.model.layers
    ]
    tokens = torch.from_numpy(TOKENS[:1].astype(np.int64))
    with torch.no_grad():
        model(tokens, use_cache=False)
        for hook in hooks:
            hook.remove()
        found = []
        for module, kwargs, out in calls:
            if kwargs['position_embeddings'] is None:
                found.append(False)
                continue
            cos, sin = kwargs['position_embeddings']
            still = {**kwargs, 'position_embeddings': (torch.ones_like(cos), 0 * sin)}
            found.append(not torch.equal(module(**still)[0], out))
    return found


@pytest.mark.parametrize('name', [
    'smollm3', 'smollm3, windows', 'cohere2', 'cohere2, yarn, other layers',
    'cohere2, no positions', 'exaone4', 'exaone4, llama3, other layers, wide heads',
    'exaone4, no positions', 'granite_swa',
    'granite_swa, other layers and bases, biases, wide heads',
])  # fmt: skip
def test_layers_that_stock_does_not_rotate_have_no_positions(
    imported: Callable[[str], Imported], name: str
) -> None:
    found = imported(name)
    turning = turning_layers(stock.restore(found.folder))
    assert found.model.without_position == tuple(not turns for turns in turning)
    assert not all(turning)


@pytest.mark.parametrize('name', ['llama', 'qwen3, windows', 'olmo3, two bases'])
def test_layers_that_stock_rotates_have_positions(
    imported: Callable[[str], Imported], name: str
) -> None:
    found = imported(name)
    assert all(turning_layers(stock.restore(found.folder)))
    assert not any(found.model.without_position)


def test_layers_of_exaone_turn_where_none_has_a_window(
    imported: Callable[[str], Imported],
) -> None:
    """The same layers, of which stock rotates all or none by whether there is a window to name."""
    turning, still = imported('exaone4, no windows'), imported('exaone4, no positions')
    assert all(turning_layers(stock.restore(turning.folder)))
    assert not any(turning.model.without_position) and all(still.model.without_position)


def test_positions_are_of_no_account_to_a_model_that_stock_does_not_rotate(
    imported: Callable[[str], Imported],
) -> None:
    """Bit for bit, and of account to a model of the same weights that stock rotates."""
    still, turning = imported('cohere2, no positions'), imported('cohere2')
    tiny.assert_same(still.variables, turning.variables)
    for found, same in ((still, True), (turning, False)):
        as_they_are, stretched = (
            stock.our_logits(found.model, found.variables, TOKENS, positions_T=places)
            for places in (np.arange(LONGEST), 3 * np.arange(LONGEST) + 7)
        )
        assert np.array_equal(as_they_are, stretched) == same


def test_continuations_at_one_length(imported: Callable[[str], Imported]) -> None:
    """Where nothing follows the length, it is of no account."""
    found = imported('llama')
    expected = stock.generate(stock.restore(found.folder), PROMPT, NEW_TOKENS)
    actual = stock.greedy(found.model, found.variables, PROMPT, NEW_TOKENS, length=LONGEST)
    np.testing.assert_array_equal(actual, expected)


def test_the_attention_that_is_used_computes_the_same(imported: Callable[[str], Imported]) -> None:
    """All else is compared with the reference."""
    found = imported('smollm3, windows')
    model = describe(open_directory(found.folder)).model
    assert model.attention is None
    expected = stock.logits(stock.restore(found.folder), TOKENS)
    actual = stock.our_logits(model, found.variables, TOKENS)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(('name', 'exponent'), [('mpt', 11), ('mpt, 6 heads', 4)])
def test_other_exponents_of_mpt(
    imported: Callable[[str], Imported], tmp_path, name: str, exponent: int
) -> None:
    """Stock accepts `alibi_bias_max` but never hands it to its function that makes the bias, and
    computes another model than was trained: no config of the kind is read or written."""
    source = imported(name)
    found = read(source.folder, position=Alibi(exponent))
    theirs = stock.restore(source.folder)
    theirs.transformer.build_mpt_alibi_tensor = lambda heads, length, device=None: (
        build_mpt_alibi_tensor(heads, length, exponent, device)
    )
    assert_same_logits(theirs, found)
    with pytest.raises(ValueError, match=r'no family .* mpt: its layers have ALiBi'):
        exported(tmp_path / 'out', found)
    family, changes = CASES[name]
    changes = {**changes, 'attn_config': {'alibi_bias_max': exponent}}
    model = stock.make(family, **changes)
    expected = stock.logits(stock.restore(source.folder), TOKENS)
    np.testing.assert_array_equal(stock.logits(model, TOKENS), expected)
    with pytest.raises(ValueError, match=rf'alibi_bias_max is {exponent}; accepted: 8'):
        describe(open_directory(stock.save(model, tmp_path / 'in')))


@pytest.mark.parametrize('name', [
    name for name in CASES if 'rope_type' in CASES[name][1].get('rope_parameters', {})
])  # fmt: skip
@pytest.mark.parametrize('key', ['type', 'rope_type'])
def test_older_configs_mean_the_same(
    imported: Callable[[str], Imported], tmp_path, name: str, key: str
) -> None:
    """`rope_theta` and `rope_scaling`, as versions of stock before 5 write them."""
    found = imported(name)
    config = json.loads((found.folder / 'config.json').read_text())
    scaling = config.pop('rope_parameters')
    config['rope_theta'] = scaling.pop('rope_theta')
    config['rope_scaling'] = {key: scaling.pop('rope_type'), **scaling}
    (tmp_path / 'config.json').write_text(json.dumps(config))
    (tmp_path / 'model.safetensors').symlink_to(found.folder / 'model.safetensors')
    model = describe(open_directory(tmp_path)).model
    assert dataclasses.replace(model, attention=found.model.attention) == found.model


def without_rotation(model: PreTrainedModel) -> PreTrainedModel:
    """Stock's model with every rotation by an angle of 0."""

    def still(x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        H = model.config.head_dim
        cos = torch.ones(*position_ids.shape, H, dtype=x.dtype)
        return cos, torch.zeros_like(cos)

    model.model.rotary_emb.forward = still
    return model


def test_the_same_weights_without_rotation(imported: Callable[[str], Imported]) -> None:
    rotary = imported('llama')
    found = read(rotary.folder, position=NoPE())
    assert found.model == rotary.model.with_position(NoPE())
    tiny.assert_same(found.variables, rotary.variables)
    theirs = without_rotation(stock.restore(found.folder))
    assert_same_logits(theirs, found)
    expected = stock.generate(theirs, PROMPT, NEW_TOKENS)
    actual = stock.greedy(found.model, found.variables, PROMPT, NEW_TOKENS)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize('position', [None, NoPE()], ids=['rotary', 'none'])
def test_scales_in_the_file_are_lambda(
    imported: Callable[[str], Imported], tmp_path, position: NoPE | None
) -> None:
    """bfloat16 multipliers of 1 / sqrt(H) per head: rows of W_q multiplied by them, in stock."""
    source = imported('llama')
    theirs = stock.restore(source.folder)
    H = source.model.head_dim
    tensors = load_file(source.folder / 'model.safetensors')
    lam_LN = torch.from_numpy(lam_between(1, 2, source.model)).to(torch.bfloat16)
    for layer, lam_N in enumerate(lam_LN):
        tensors[f'model.layers.{layer}.self_attn.scale_param'] = lam_N.clone()
        rows = theirs.model.layers[layer].self_attn.q_proj.weight
        with torch.no_grad():
            rows *= lam_N.float().repeat_interleave(H)[:, None]
    save_file(tensors, tmp_path / 'model.safetensors', {'format': 'pt'})
    (tmp_path / 'config.json').symlink_to(source.folder / 'config.json')
    found = read(tmp_path, position=position)
    np.testing.assert_array_equal(found.variables['lam']['head'], lam_LN.float())
    assert_same_logits(without_rotation(theirs) if position else theirs, found)


def lit_gpt_tensors(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Its weights under the names of lit-gpt: for every key-value head the rows of its query
    heads, then its key's, then its value's, in one matrix."""
    state = model.state_dict()
    H, K = model.config.head_dim, model.config.num_key_value_heads
    G = model.config.num_attention_heads // K
    tensors = {
        'transformer.wte.weight': state['model.embed_tokens.weight'],
        'transformer.ln_f.weight': state['model.norm.weight'],
        'lm_head.weight': state['lm_head.weight'],
    }
    for layer in range(model.config.num_hidden_layers):
        there, here = f'model.layers.{layer}.', f'transformer.h.{layer}.'
        q, k, v = (state[f'{there}self_attn.{name}_proj.weight'] for name in 'qkv')
        fused = torch.empty((G + 2) * K * H, q.shape[1])
        for head in range(G * K):
            row = (G + 2) * H * (head // G) + H * (head % G)
            fused[row : row + H] = q[H * head : H * (head + 1)]
        for group in range(K):
            row = (G + 2) * H * group + G * H
            fused[row : row + H] = k[H * group : H * (group + 1)]
            fused[row + H : row + 2 * H] = v[H * group : H * (group + 1)]
        tensors[f'{here}attn.attn.weight'] = fused
        for ours, stocks in (
            ('norm_1', 'input_layernorm'),
            ('attn.proj', 'self_attn.o_proj'),
            ('norm_2', 'post_attention_layernorm'),
            ('mlp.swiglu.w1', 'mlp.gate_proj'),
            ('mlp.swiglu.w2', 'mlp.up_proj'),
            ('mlp.swiglu.w3', 'mlp.down_proj'),
        ):
            tensors[f'{here}{ours}.weight'] = state[f'{there}{stocks}.weight']
    return tensors


def llama_parameters(state: Mapping[str, np.ndarray], model: ModelConfig) -> dict[str, np.ndarray]:
    """Stock's tensors of a Llama with biases and a tied head as ours, under '/'-separated names."""
    N, K, H, D = model.heads, model.kv_heads, model.head_dim, model.width

    def stacked(name: str, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        tensors = (state[f'model.layers.{layer}.{name}'] for layer in range(model.layers))
        return np.stack([change(tensor) for tensor in tensors])

    found = {
        'embedding': state['model.embed_tokens.weight'],
        'final_norm/scale': state['model.norm.weight'],
        'layers/attention_norm/scale': stacked('input_layernorm.weight', np.asarray),
        'layers/mlp_norm/scale': stacked('post_attention_layernorm.weight', np.asarray),
        'layers/attention/output': stacked(
            'self_attn.o_proj.weight', lambda array: array.T.reshape(N, H, D)
        ),
        'layers/attention/output_bias': stacked('self_attn.o_proj.bias', np.asarray),
    }
    for letter, name, heads in (('q', 'query', N), ('k', 'key', K), ('v', 'value', K)):
        stem = f'self_attn.{letter}_proj'
        shape = heads, H
        found[f'layers/attention/{name}'] = stacked(
            f'{stem}.weight', lambda array, shape=shape: array.T.reshape(D, *shape)
        )
        found[f'layers/attention/{name}_bias'] = stacked(
            f'{stem}.bias', lambda array, shape=shape: array.reshape(shape)
        )
    for name in ('gate', 'up', 'down'):
        found[f'layers/mlp/{name}'] = stacked(f'mlp.{name}_proj.weight', np.transpose)
        found[f'layers/mlp/{name}_bias'] = stacked(f'mlp.{name}_proj.bias', np.asarray)
    return found


@pytest.mark.parametrize('shard_size', ['1GB', '40KB'])
@pytest.mark.parametrize('dtype', ['float32', 'bfloat16', 'float16'])
def test_parameters_are_the_numbers_in_the_files(tmp_path, dtype: str, shard_size: str) -> None:
    model = stock.make('llama', **CASES['llama, biases, tied'][1])
    stock.save(model, tmp_path, dtype=dtype, max_shard_size=shard_size)
    assert (len(list(tmp_path.glob('*.safetensors'))) > 1) == (shard_size == '40KB')
    found = read(tmp_path)
    assert found.described.dtype == dtype
    state = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    actual = flax.traverse_util.flatten_dict(found.variables['params'], sep='/')
    tiny.assert_same(actual, llama_parameters(state, found.model))
    assert counts.parameters(found.model) == model.num_parameters()


def test_lit_gpt_checkpoints(imported: Callable[[str], Imported], tmp_path) -> None:
    """The names and the fused matrix of the code that TinyLlama was trained with."""
    source = imported('llama')
    theirs = stock.restore(source.folder)
    save_file(lit_gpt_tensors(theirs), tmp_path / 'lit_model.safetensors')
    model = source.model
    config = {
        'name': 'tiny',
        'block_size': TRAINED,
        'vocab_size': VOCAB,
        'padded_vocab_size': VOCAB,
        'n_layer': model.layers,
        'n_head': model.heads,
        'n_query_groups': model.kv_heads,
        'n_embd': model.width,
        'rotary_percentage': 1.0,
        'parallel_residual': False,
        'bias': False,
        'shared_attention_norm': False,
        '_norm_class': 'FusedRMSNorm',
        'norm_eps': model.norm_epsilon,
        '_mlp_class': 'LLaMAMLP',
        'intermediate_size': model.mlp_width,
    }
    (tmp_path / 'lit_config.json').write_text(json.dumps(config))
    found = read(tmp_path)
    assert_equal_models(found, source)
    assert_same_logits(theirs, found)


def exported(folder: pathlib.Path, found: Imported, **options: Any) -> pathlib.Path:
    save(folder, found.variables, found.described, export=Export(**options))
    return folder


# All but those with a norm of each head.
UNFOLDABLE = ('qwen3', 'exaone4', 'gemma3_text', 'gemma4_text', 'gemma4_unified_text')
FOLDABLE = [name for name in CASES if CASES[name][0] not in UNFOLDABLE]
LLAMA_SHAPED = [name for name in CASES if CASES[name][0] not in ('bloom', 'mpt')]


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ()) for name in FOLDABLE
])  # fmt: skip
def test_stock_computes_the_same_with_lambda_folded(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    found = imported(name)
    found = found.with_lam(lam_between(1, 2, found.model))
    folder = exported(tmp_path / 'out', found)
    theirs = stock.restore(folder)
    assert_same_logits(theirs, found)
    neutral = imported(name).logits(TOKENS)
    assert np.abs(found.logits(TOKENS) - neutral).max() > 1
    again = read(folder)
    assert again.model == found.model
    tiny.assert_same(again.variables, fold(found.model, found.variables)[1])


def with_form(found: Imported, form: Form) -> Imported:
    """The same parameters with lambda in another form."""
    model = dataclasses.replace(found.model, lam=form)
    return dataclasses.replace(found, described=found.described._replace(model=model))


@pytest.mark.parametrize('name', ['llama', 'dynamic', 'longrope', 'bloom'])
def test_a_lambda_that_follows_the_length_is_folded_at_one(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    """Below that length too, the written model has the lambda of that length."""
    source = imported(name)
    found = with_form(source, LogLength(TRAINED))
    found = found.with_lam(lam_between(0, 0.5, found.model))
    theirs = stock.restore(exported(tmp_path / 'out', found, length=LONGEST))
    expected = stock.logits(theirs, TOKENS)
    np.testing.assert_allclose(found.logits(TOKENS), expected, rtol=0, atol=TOLERANCE)
    assert np.abs(source.logits(TOKENS) - expected).max() > 1
    if not follows(name):
        assert_same_logits(theirs, found, length=LONGEST)


def test_a_lambda_of_layers_without_position_alone(
    imported: Callable[[str], Imported], tmp_path
) -> None:
    source = imported('smollm3')
    model = dataclasses.replace(source.model, lam_layers='nope')
    found = dataclasses.replace(source, described=source.described._replace(model=model))
    found = found.with_lam(lam_between(1, 2, model))
    assert_same_logits(stock.restore(exported(tmp_path / 'out', found)), found)


def of_ours(model: ModelConfig) -> Imported:
    """A model that no other library has seen."""
    return Imported(pathlib.Path(), Described(model, TRAINED), tiny.variables(model))


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'tied_head': True, 'qkv_bias': True, 'output_bias': True, 'mlp_bias': True},
        {'pattern': (LayerKind(NoPE(), WINDOW), LayerKind(Rotary()))},
    ],
    ids=['plain', 'biases, tied', 'mixed'],
)
def test_models_without_position_encoding_are_written_for_stock(
    tmp_path, changes: dict[str, Any]
) -> None:
    model = tiny.model(width=128, head_dim=16, layers=3, vocab_size=VOCAB, **changes)
    found = of_ours(model)
    found = found.with_lam(lam_between(1, 2, model))
    folder = exported(tmp_path / 'out', found)
    assert json.loads((folder / 'config.json').read_text())['model_type'] == 'smollm3'
    theirs = stock.restore(folder)
    assert_same_logits(theirs, found)
    expected = stock.generate(theirs, PROMPT, NEW_TOKENS)
    actual = stock.greedy(model, found.variables, PROMPT, NEW_TOKENS)
    np.testing.assert_array_equal(actual, expected)
    assert read(folder).model == model


@pytest.mark.parametrize('name', CASES)
def test_what_is_written_is_read_back(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    found = imported(name)
    again = read(exported(tmp_path / 'out', found))
    assert again.described == found.described
    assert_equal_models(again, found)
    if name in LLAMA_SHAPED:
        found = found.with_lam(lam_between(1, 2, found.model))
        assert_equal_models(read(exported(tmp_path / 'scaled', found, lam='scale_param')), found)


def test_lambda_may_be_left_out(imported: Callable[[str], Imported], tmp_path) -> None:
    found = imported('qwen3')
    scaled = found.with_lam(lam_between(1, 2, found.model))
    assert_equal_models(read(exported(tmp_path / 'out', scaled, lam='none')), found)


@pytest.mark.parametrize('name', ['bloom', 'mpt'])
def test_scales_are_tensors_of_llamas_alone(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    with pytest.raises(ValueError, match="lam='scale_param' is a tensor of Llama-shaped"):
        exported(tmp_path / 'out', imported(name), lam='scale_param')
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('dtype', ['bfloat16', 'float16'])
def test_numbers_are_rounded_once(
    imported: Callable[[str], Imported], tmp_path, dtype: str
) -> None:
    """To the dtype of the files, after lambda was folded; and in several files as in one."""
    source = imported('llama, biases, tied')
    found = source.with_lam(lam_between(1, 2, source.model))
    folder = exported(tmp_path / 'out', found, dtype=dtype, shard_bytes=20_000)
    assert len(list(folder.glob('*.safetensors'))) > 2
    assert AutoConfig.from_pretrained(folder).dtype == getattr(torch, dtype)
    wanted = {
        path: torch.from_numpy(np.array(array)).to(getattr(torch, dtype)).float().numpy()
        for path, array in flax.traverse_util.flatten_dict(
            fold(found.model, found.variables)[1]['params'], sep='/'
        ).items()
    }
    state = {name: tensor.numpy() for name, tensor in stock.restore(folder).state_dict().items()}
    tiny.assert_same(llama_parameters(state, found.model), wanted)
    params = read(folder).variables['params']
    tiny.assert_same(flax.traverse_util.flatten_dict(params, sep='/'), wanted)


@pytest.mark.parametrize('name', ['qwen3', 'exaone4'])
def test_lambda_cannot_be_folded_behind_a_norm(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    """RMSNorm divides every factor of a head out again. A neutral lambda has none."""
    found = imported(name)
    lam_LN = np.ones((found.model.layers, found.model.heads), np.float32)
    exported(tmp_path / 'neutral', found.with_lam(lam_LN))
    lam_LN[2, 1] = 1.1
    with pytest.raises(ValueError, match=r"QK-norm.*lam='scale_param'"):
        exported(tmp_path / 'out', found.with_lam(lam_LN))
    assert [path.name for path in tmp_path.iterdir()] == ['neutral']


@pytest.mark.parametrize('name', ['llama', 'qwen3'])
@pytest.mark.parametrize('lam', ['fold', 'scale_param'])
def test_a_lambda_that_follows_the_length_is_never_written_without_one(
    imported: Callable[[str], Imported], tmp_path, name: str, lam: str
) -> None:
    found = with_form(imported(name), LogLength(TRAINED))
    found = found.with_lam(lam_between(0, 0.5, found.model))
    with pytest.raises(ValueError, match=r'follows the length of the sequence|QK-norm'):
        exported(tmp_path / 'out', found, lam=lam)
    assert not list(tmp_path.iterdir())
