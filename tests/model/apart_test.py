"""Layers that differ in the shapes of their arrays, share keys, or read the tokens."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.attention import Mask
from nope.attention.reference import reference_attention
from nope.model import LayerKind, ModelConfig, apply, counts
from nope.model.attention import SelfAttention
from nope.model.cache import LayerCache, empty
from nope.model.decoding.reading import unstack
from nope.model.lam import LogLength, Product
from nope.model.lam.info_scale import InfoScale
from nope.model.mixers import Mamba2
from nope.model.sequence import Sequence
from nope.model.shape import AskedStats
from nope.model.token_inputs import TokenInput, TokenInputs
from nope.positions import ForgetGate, NoPE, RoPE
from nope.runtime.errors import FieldError
from nope.variables import Variables, abstract_variables
from tests import tiny
from tests.model.programs import T, influence, loss_and_gradients, run

LOCAL = LayerKind(RoPE(), window=4)
WIDE = LayerKind(
    RoPE(1e6, share=0.25), head_dim=16, kv_heads=1, values_from='keys'
)  # as layers of Gemma 4 that see every key
WITHOUT_KEYS = tuple(
    dataclasses.replace(kind, keys_from='earlier', mlp_width=96) for kind in (LOCAL, WIDE, LOCAL)
)
GEMMA4 = tiny.model(
    layers=6,
    pattern=(LOCAL, WIDE, LOCAL, *WITHOUT_KEYS),
    block='both',
    qk_norm=True,
    value_norm=True,
    softmax_scale=1.0,
    layer_scale=True,
    token_width=4,
    logit_cap=5.0,
    tied_head=True,
    embedding_multiplier=32**0.5,
    lam=LogLength(6),
)
# The same in the other ways that a model may have, and with one thing alone.
EVERY_ARRAY: dict[str, Any] = {
    'norm': 'layer',
    'norm_bias': True,
    'qkv_bias': True,
    'output_bias': True,
    'mlp_bias': True,
    'sinks': True,
    'output_gate': 'element',
    'temperature': 'adaptive',
}
# Mamba-2 with an MLP and without, attention without one, and an MLP alone.
HYBRID = tiny.model(
    layers=4,
    pattern=(
        LayerKind(mixer=Mamba2(4, 8, 6, groups=2, bias=True), mlp=False),
        LayerKind(mlp=False),
        LayerKind(mixer=None),
        LayerKind(mixer=Mamba2(2, 12, 5)),
    ),
    lam=LogLength(6),
)
MODELS = {
    'gemma4': GEMMA4,
    'every array': dataclasses.replace(GEMMA4, **EVERY_ARRAY, block='pre', tied_head=False),
    'QK-norm of all heads': dataclasses.replace(GEMMA4, qk_norm_over='projection'),
    'other MLPs': tiny.model(pattern=(LayerKind(RoPE(), mlp_width=20), LayerKind())),
    'other mixers': HYBRID,
    'inputs of tokens': tiny.model(token_width=3, mlp='plain', activation='relu'),
}


def test_sizes_that_are_the_models_make_no_other_kind() -> None:
    said = LayerKind(RoPE(), head_dim=8, kv_heads=2, mlp_width=48)
    config = tiny.model(pattern=(said,))
    assert config.kinds == (LayerKind(RoPE()),) and not config.apart
    assert all(model.apart for model in MODELS.values())


def test_positions_are_described_without_sizes() -> None:
    assert GEMMA4.describe_position() == 'RoPE, window 4 + RoPE, 0.25 of pairs'
    assert 'MLP of 96, keys of an earlier layer' in GEMMA4.describe_kinds()


@pytest.mark.parametrize('model', MODELS)
def test_parameters_are_counted(model: str) -> None:
    config = MODELS[model]
    arrays = jax.tree.leaves(abstract_variables(config, tiny.mesh())['params'])
    assert counts.parameters(config) == sum(array.size for array in arrays)


def test_flops_are_those_of_each_layers_arrays() -> None:
    """6 for every number in a matrix but the embedding, and attention's heads by their sizes."""
    config = dataclasses.replace(GEMMA4, tied_head=False, layer_scale=False)
    leaves = jax.tree_util.tree_leaves_with_path(abstract_variables(config, tiny.mesh())['params'])
    weights = sum(
        leaf.size for path, leaf in leaves if leaf.ndim > 1 and path[-1].key != 'embedding'
    )
    attended = 4 * (4 * 8 * (2 - 4 / 10) * 4 + 2 * 16 * 10)  # four layers have a window of 4
    assert counts.training_flops(config, 10) == pytest.approx(6 * (weights + attended))


def test_layers_apart_compute_what_stacked_ones_do() -> None:
    """Inputs of the tokens whose last matrix is 0 add nothing."""
    pattern = (LayerKind(RoPE(), window=4), LayerKind(NoPE()))
    plain = tiny.model(layers=4, pattern=pattern, lam=LogLength(6), lam_layers='nope')
    apart = dataclasses.replace(plain, token_width=3)
    stacked, inputs = tiny.varied_lam(plain), tiny.variables(apart)['params']
    layers = {
        str(i): {
            **jax.tree.map(lambda leaf, i=i: leaf[i], stacked['params']['layers']),
            'token_input': jax.tree.map(jnp.zeros_like, inputs['layers'][str(i)]['token_input']),
        }
        for i in range(4)
    }
    params = {**stacked['params'], 'layers': layers, 'token_inputs': inputs['token_inputs']}
    tokens = tiny.tokens(2, T)
    expected = run(plain, stacked, tokens)
    found = run(apart, {**stacked, 'params': params}, tokens)
    for a, b in ((found.hidden, expected.hidden), (found.entropy, expected.entropy)):
        np.testing.assert_allclose(a, b, atol=2e-6)


def models_but(*slow: str) -> Any:
    """Over the models, those with one of these words in their names slow."""
    marks = {name: pytest.mark.slow if any(w in name for w in slow) else () for name in MODELS}
    return pytest.mark.parametrize('model', [pytest.param(n, marks=m) for n, m in marks.items()])


some = models_but('every', 'all')


@some
def test_no_token_sees_later_ones(model: str) -> None:
    later = np.arange(T)[:, None] > np.arange(T)
    changed_ST, _ = influence(MODELS[model])
    assert not changed_ST[later].any()
    assert changed_ST[~later].all()


@models_but('every', 'all', 'gemma4')
def test_a_cache_continues_as_the_whole_does(model: str) -> None:
    """Two rows, one behind padding, in pieces."""
    config = MODELS[model]
    variables = tiny.variables(config)
    tokens = tiny.tokens(2, T)
    whole = run(config, variables, tokens, length=float(T)).hidden
    shorter = run(config, variables, tokens[1:, 3:], length=float(T)).hidden
    padding = jnp.asarray([0, 3], jnp.int32)
    cache = empty(config, jnp.full((2,), float(T)), T + 2, padding)
    weights = unstack(config, variables)
    step = jax.jit(functools.partial(apply, config))
    pieces = []
    for first, last in ((0, 5), (5, 6), (6, T)):
        output = step(weights, tokens[:, first:last], cache=cache)
        assert output.cache is not None
        cache = output.cache
        pieces.append(output.hidden)
    found = jnp.concatenate(pieces, axis=1)
    np.testing.assert_allclose(found[0], whole[0], atol=2e-5)
    np.testing.assert_allclose(found[1, 3:], shorter[0], atol=2e-5)


def test_a_cache_holds_own_keys_alone() -> None:
    cache = empty(GEMMA4, jnp.ones(2), 7)
    shapes = [None if layer is None else layer.keys_BSKH.shape for layer in cache.layers]
    assert shapes == [(2, 7, 2, 8), (2, 7, 1, 16), (2, 7, 2, 8), None, None, None]
    assert cache.slots == 7


def test_keys_are_of_the_last_layer_like_it_that_has_its_own() -> None:
    assert [GEMMA4.source_of(layer) for layer in range(6)] == [0, 1, 2, 2, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize('remat', ['elementwise', 'dots', 'full'])
def test_what_is_recomputed_changes_no_gradient(remat: str) -> None:
    blocks = tiny.tokens(2, T + 1)
    variables = tiny.variables(GEMMA4)
    loss, gradients = loss_and_gradients(GEMMA4, variables, blocks)
    assert all(np.any(np.asarray(leaf)) for leaf in jax.tree.leaves(gradients['params']))
    again = dataclasses.replace(GEMMA4, remat=remat)
    found, others = loss_and_gradients(again, variables, blocks)
    np.testing.assert_allclose(found, loss, rtol=1e-6)
    for a, b in zip(jax.tree.leaves(others), jax.tree.leaves(gradients), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * float(jnp.abs(b).max()))


def test_a_mesh_changes_no_output() -> None:
    config = dataclasses.replace(GEMMA4, vocab_size=80)
    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=2, tensor=2), jax.devices()[:4])
    tokens = tiny.tokens(4, T)
    placed = jax.tree.map(
        lambda leaf, target: jax.device_put(leaf, target.sharding),
        tiny.variables(config),
        {name: abstract_variables(config, mesh)[name] for name in ('params', 'lam')},
    )
    with sharding.use(mesh):
        program = jax.jit(functools.partial(apply, config, entropy=True)).lower(placed, tokens)
        compiled = program.compile()
        found = compiled(placed, tokens)
    # Of the second embedding, [80, 6 * 4], a device has a quarter, and never more.
    assert 'f32[40,12]' in compiled.as_text()
    assert not re.search(r'f32\[(80|40),24\]', compiled.as_text())
    expected = run(config, tiny.variables(config), tokens)
    np.testing.assert_allclose(found.hidden, expected.hidden, atol=2e-4)
    np.testing.assert_allclose(found.entropy, expected.entropy, atol=2e-4)


def attention_layer(config: ModelConfig) -> tuple[dict[str, Any], jax.Array, Sequence]:
    """The attention arrays of the first layer, what it reads, and its sequence."""
    params = tiny.variables(config)['params']['layers']
    layer = params['0'] if config.apart else jax.tree.map(lambda leaf: leaf[0], params)
    x_BTD = jnp.asarray(np.random.default_rng(1).normal(size=(2, T, 32)), jnp.float32)
    sequence = Sequence(Mask(), jnp.arange(T)[None], jnp.float32(T), None)
    return layer['attention'], x_BTD, sequence


def attend(config: ModelConfig, params: Any, x_BTD: jax.Array, *rest: Any, **kwargs: Any) -> Any:
    one = jnp.ones(config.heads)
    module = SelfAttention(config.of_layer(0), AskedStats())
    return module.apply({'params': params}, x_BTD, one, 0, *rest, **kwargs)[0]


def test_keys_and_values_of_another_layer_are_attended_to() -> None:
    config = tiny.model(position=RoPE())
    params, x_BTD, sequence = attention_layer(config)
    draw = np.random.default_rng(2)
    k_BTKH, v_BTKH = (jnp.asarray(draw.normal(size=(2, T, 2, 8)), jnp.float32) for _ in range(2))
    own = {name: params[name] for name in ('query', 'output')}
    found = attend(config, own, x_BTD, sequence, source=LayerCache(k_BTKH, v_BTKH))
    q_BTNH = jnp.einsum('BTD,DNH->BTNH', x_BTD, params['query'])
    q_BTNH, _ = RoPE().encode(q_BTNH, q_BTNH, sequence.positions_BT, T)
    out_BTNH = reference_attention(
        q_BTNH / 8**0.5, k_BTKH, v_BTKH, mask=Mask(), bias=None, entropy=False
    ).out
    expected = jnp.einsum('BTNH,NHD->BTD', out_BTNH, params['output'])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_values_from_keys_are_keys_before_norm_and_positions() -> None:
    config = tiny.model(position=RoPE(), qk_norm=True)
    params, x_BTD, sequence = attention_layer(config)
    expected = attend(config, {**params, 'value': params['key']}, x_BTD, sequence)
    alike = dataclasses.replace(
        config, position=NoPE(), pattern=(LayerKind(RoPE(), values_from='keys'),)
    )
    own = {name: params[name] for name in params if name != 'value'}
    np.testing.assert_array_equal(attend(alike, own, x_BTD, sequence), expected)


def test_value_heads_have_unit_norm() -> None:
    """A value weight of any size makes the same output, and that of one key its direction."""
    config = tiny.model(value_norm=True)
    params, x_BTD, sequence = attention_layer(config)
    found = attend(config, params, x_BTD, sequence)
    larger = attend(config, {**params, 'value': 30 * params['value']}, x_BTD, sequence)
    np.testing.assert_allclose(larger, found, atol=1e-4)
    v_BKH = jnp.einsum('BD,DKH->BKH', x_BTD[:, 0], params['value'])
    v_BKH /= jnp.sqrt(jnp.mean(v_BKH**2, axis=-1, keepdims=True) + config.norm_epsilon)
    first = jnp.einsum('BNH,NHD->BD', jnp.repeat(v_BKH, 2, axis=1), params['output'])
    np.testing.assert_allclose(found[:, 0], first, atol=1e-5)


def test_what_leaves_a_layer_is_multiplied() -> None:
    config = tiny.model(layer_scale=True, norm='none')
    variables = tiny.variables(config)
    params = variables['params']

    def hidden(*scales: float) -> np.ndarray:
        scale_L1 = jnp.asarray(scales, jnp.float32)[:, None]
        layers = {**params['layers'], 'layer_scale': scale_L1}
        scaled: Variables = {**variables, 'params': {**params, 'layers': layers}}
        return np.asarray(run(config, scaled, tiny.tokens(1, T)).hidden)

    np.testing.assert_allclose(hidden(1, 3), 3 * hidden(1, 1), rtol=1e-5)
    assert np.abs(hidden(3, 1) - hidden(1, 1)).max() > 0.1
    plain = dataclasses.replace(config, layer_scale=False)
    layers = {name: params['layers'][name] for name in ('attention', 'mlp')}
    alone = run(plain, {**variables, 'params': {**params, 'layers': layers}}, tiny.tokens(1, T))
    np.testing.assert_allclose(hidden(1, 1), alone.hidden, rtol=1e-6)


def test_inputs_of_tokens_are_those_of_the_equation() -> None:
    config = tiny.model(token_width=3)
    params = tiny.variables(config)['params']
    tokens, draw = tiny.tokens(2, 5), np.random.default_rng(0)
    e_BTD, x_BTD = draw.normal(size=(2, 2, 5, 32)).astype(np.float32)
    made, own = params['token_inputs'], params['layers']['1']['token_input']

    def normed(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return x / np.sqrt(np.mean(x**2, -1, keepdims=True) + config.norm_epsilon) * weight

    of_embedding = (e_BTD @ made['projection'] / 32**0.5).reshape(2, 5, 2, 3)
    of_token = 3**0.5 * np.asarray(made['embedding'])[tokens].reshape(2, 5, 2, 3)
    u_BTLP = (normed(of_embedding, made['norm']['scale']) + of_token) / 2**0.5
    found = TokenInputs(config).apply({'params': made}, tokens, e_BTD)
    np.testing.assert_allclose(found, np.moveaxis(u_BTLP, 2, 0), atol=1e-5)

    gate = x_BTD @ own['gate']
    inner = gate / (1 + np.exp(-gate)) * u_BTLP[:, :, 1]
    expected = normed(inner @ own['output'], own['norm']['scale'])
    added = TokenInput(config).apply({'params': own}, x_BTD, jnp.asarray(u_BTLP[:, :, 1]))
    np.testing.assert_allclose(added, expected, atol=1e-4)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (
            {'pattern': (LOCAL, WITHOUT_KEYS[1])},
            r"pattern\[1\].keys_from is 'earlier'; no layer before layer 1 has keys of its own and "
            'is RoPE, 0.25 of pairs, head dim 16',
        ),
        ({'pattern': (WITHOUT_KEYS[0],)}, r'pattern\[0\].keys_from'),
        (
            {'pattern': (LayerKind(ForgetGate()), LayerKind(ForgetGate(), keys_from='earlier'))},
            r'pattern\[1\].keys_from.*forget gates',
        ),
        ({'pattern': (LayerKind(kv_heads=3),)}, r'pattern\[0\].kv_heads is 3.*multiple'),
        ({'pattern': (LayerKind(RoPE(), head_dim=3),)}, r'head_dim is 3'),
        (
            {'pattern': (LOCAL, LayerKind(head_dim=16)), 'lam': InfoScale(32, 8)},
            r'lam.head_dim is 8.*16',
        ),
        (
            {
                'pattern': (LOCAL, LayerKind(head_dim=16)),
                'lam': Product(LogLength(6), InfoScale(32, 8)),
            },
            r'lam.head_dim is 8',
        ),
        ({'token_width': 0}, 'token_width is 0'),
        ({'logit_cap': 0.0}, 'logit_cap is 0.0'),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        tiny.model(**changes)


@pytest.mark.parametrize(
    ('field', 'value'),
    [('head_dim', 0), ('mlp_width', -1), ('keys_from', 'later'), ('values_from', 'queries')],
)
def test_kinds_refuse_values_by_name(field: str, value: Any) -> None:
    with pytest.raises(FieldError, match=f'{field} is '):
        LayerKind(**{field: value})
