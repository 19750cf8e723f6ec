"""A layer of Mamba-2 is what its equations say, document by document and on every mesh."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.model import LayerKind, ModelConfig, apply
from nope.model.blocks import Mixing
from nope.model.cache import empty
from nope.model.decoding import unstack
from nope.model.mixers import MIXERS, Attention, Mamba2, from_section
from nope.model.sequence import Sequence, of_tokens
from nope.runtime.errors import FieldError
from nope.variables import fresh_variables
from tests import tiny
from tests.model.programs import T, loss_and_gradients, run
from tests.state_space.recurrence import recurrent_scan

MIXER = Mamba2(4, 6, 5, groups=2, taps=3, bias=True, least_step=0.02, most_step=0.5)
HYBRID = tiny.model(
    layers=3, pattern=(LayerKind(mixer=MIXER), LayerKind(), LayerKind(mixer=Mamba2(2, 8, 4)))
)
TOKENS = tiny.tokens(2, T)


def sequence(segments_BT: np.ndarray | None = None) -> Sequence:
    absent = {'positions_BT': None, 'length': None, 'queries_R': None}
    return of_tokens(HYBRID, TOKENS, None, segments_BT=segments_BT, **absent)


def drawn(params: Any) -> Any:
    """Every parameter off its first value; steps on both sides of their bounds."""
    keys = iter(jax.random.split(jax.random.key(3), 40))
    return jax.tree.map(lambda x: x + 0.3 * jax.random.normal(next(keys), x.shape), params)


@functools.cache
def layer() -> tuple[Any, jax.Array]:
    x_BTD = jax.random.normal(jax.random.key(1), (2, T, HYBRID.width))
    module = Mixing(HYBRID, MIXER)
    params = sharding.unbox(module.init(jax.random.key(0), x_BTD, sequence(), None)['params'])
    return drawn(params), x_BTD


def by_definition(p: Any, u_BTD: np.ndarray) -> np.ndarray:
    """The layer's output by the equations of its module, token by token."""

    def silu(z: np.ndarray) -> np.ndarray:
        return z / (1 + np.exp(-z))

    def projected(name: str) -> np.ndarray:
        return np.einsum('btd,dnh->btnh', u_BTD, p[name]) + p[f'{name}_bias']

    def convolved(name: str) -> np.ndarray:
        z = np.pad(projected(name), [(0, 0), (2, 0), (0, 0), (0, 0)])
        seen = sum(p[f'{name}_taps'][w] * z[:, w : w + T] for w in range(3))
        return silu(seen + p[f'{name}_taps_bias'])

    raw = projected('step')[..., 0] + p['dt_bias']
    dt = np.clip(np.log1p(np.exp(raw)), 0.02, 0.5)
    assert (dt == 0.5).any() and (dt < 0.5).any()
    x, b, c = map(convolved, 'xbc')
    y, _ = recurrent_scan(*map(jnp.float32, (x, dt, -np.exp(p['log_a']), b, c)))
    gated = (np.asarray(y) + p['skip'][:, None] * x) * silu(projected('gate'))
    grouped = gated.reshape(2, T, 2, -1)
    normed = grouped / np.sqrt(np.mean(grouped**2, axis=-1, keepdims=True) + HYBRID.norm_epsilon)
    out = np.einsum('btnh,nhd->btd', normed.reshape(gated.shape) * p['scale'], p['output'])
    return out + p['output_bias']


def test_the_layer_is_what_its_equations_say() -> None:
    params, x_BTD = layer()
    found, _ = Mixing(HYBRID, MIXER).apply({'params': params}, x_BTD, sequence(), None)
    expected = by_definition(jax.tree.map(np.float64, params), np.float64(x_BTD))
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_documents_of_a_row_do_not_see_each_other() -> None:
    params, x_BTD = layer()
    segments_BT = np.repeat([[7, 3, 7]], [5, 4, T - 9], axis=1) + np.array([[0], [2]])
    packed = sequence(segments_BT.astype(np.int32))
    module = Mixing(HYBRID, MIXER)
    found, _ = module.apply({'params': params}, x_BTD, packed, None)
    for begin, end in ((0, 5), (5, 9), (9, T)):
        alone, _ = module.apply({'params': params}, x_BTD[:, begin:end], sequence(), None)
        np.testing.assert_allclose(found[:, begin:end], alone, atol=1e-5)


def test_a_state_goes_on_where_it_was_left() -> None:
    params, x_BTD = layer()
    module = Mixing(HYBRID, MIXER)
    whole, _ = module.apply({'params': params}, x_BTD, sequence(), None)
    state, pieces = MIXER.empty(2, 'float32'), []
    for begin, end in ((0, 6), (6, 7), (7, 8), (8, T)):
        piece, state = module.apply({'params': params}, x_BTD[:, begin:end], sequence(), state)
        pieces.append(piece)
    np.testing.assert_allclose(np.concatenate(pieces, axis=1), whole, atol=1e-5)


def test_padding_without_an_epsilon_is_no_nan() -> None:
    config = dataclasses.replace(HYBRID, norm_epsilon=0.0, layers=2, pattern=HYBRID.pattern[:2])
    variables = tiny.variables(config)
    cache = empty(config, jnp.full(2, 20.0), 20, jnp.asarray([0, 3], jnp.int32))
    output = apply(config, unstack(config, variables), TOKENS, cache=cache)
    assert np.isfinite(np.asarray(output.hidden)[1, 3:]).all()


def test_lambda_and_entropy_are_of_layers_with_attention() -> None:
    assert (HYBRID.attending, HYBRID.attention_layers, HYBRID.rewinds) == ((1,), 1, False)
    assert HYBRID.heads_with_lam.shape == HYBRID.heads_without_position.shape == (1, 4)
    variables = tiny.varied_lam(HYBRID)
    assert variables['lam']['head'].shape == (1, 4)
    output = apply(HYBRID, variables, TOKENS, entropy=True, span=4)
    assert output.entropy.shape == output.shape.local.shape == (1, 2, 4, T)


def test_fresh_steps_and_rates_are_those_of_mamba2() -> None:
    wide = LayerKind(mixer=Mamba2(128, 2, 2))
    config = dataclasses.replace(HYBRID, pattern=(wide, LayerKind()))
    params = fresh_variables(config, tiny.mesh(), 0)['params']
    fresh = params['layers']['0']['mamba2']
    dt = np.log1p(np.exp(fresh['dt_bias']))
    assert 0.001 <= dt.min() < 0.002 and 0.05 < dt.max() <= 0.1001
    rates = np.exp(fresh['log_a'])
    assert 1 <= rates.min() < 2 and 15 < rates.max() <= 16
    assert np.all(fresh['skip'] == 1) and np.all(fresh['scale'] == 1)
    assert 0.49 < np.abs(fresh['x_taps']).max() <= 0.5


@pytest.mark.parametrize('remat', ['none', 'full'])
def test_every_parameter_has_a_gradient(remat: str) -> None:
    config = dataclasses.replace(HYBRID, remat=remat)
    loss, gradients = loss_and_gradients(config, tiny.variables(config), tiny.tokens(2, T + 1))
    leaves = jax.tree_util.tree_leaves_with_path(gradients['params'])
    missing = [path for path, leaf in leaves if not np.any(np.asarray(leaf))]
    assert np.isfinite(loss) and not missing


def placed(config: ModelConfig, mesh: Any) -> Any:
    return tiny.spread(tiny.variables(config), config, mesh)


def test_heads_are_divided_over_devices() -> None:
    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=2, tensor=2), jax.devices()[:4])
    variables = placed(HYBRID, mesh)
    scale_NH = variables['params']['layers']['0']['mamba2']['scale']
    assert scale_NH.sharding.shard_shape(scale_NH.shape) == (2, 6)
    tokens = tiny.tokens(4, T)
    with sharding.use(mesh):
        found = jax.jit(functools.partial(apply, HYBRID, entropy=True))(variables, tokens)
    expected = run(HYBRID, tiny.variables(HYBRID), tokens)
    np.testing.assert_allclose(found.hidden, expected.hidden, atol=2e-4)


def test_every_mixer_is_made_from_a_section() -> None:
    assert from_section({'kind': 'attention'}, 'mixer') == Attention()
    section = {'kind': 'mamba2', 'heads': 4, 'head_dim': 6, 'state': 5, 'least_step': 0}
    assert from_section(section, 'mixer') == Mamba2(4, 6, 5)
    assert from_section(None, 'mixer') is None
    assert all(kind.name == name for name, kind in MIXERS.items())


@pytest.mark.parametrize(('section', 'message'), [
    ({'kind': 'rwkv'}, "mixer.kind is 'rwkv'; accepted: attention, mamba2"),
    ({'kind': 'mamba2', 'heads': 4, 'head_dim': 6}, 'mixer.state is missing; Mamba2 needs it'),
    ({'kind': 'mamba2', 'heads': 4, 'head_dim': 6, 'state': 0}, 'mixer.state is 0; accepted: 1'),
    (
        {'kind': 'mamba2', 'heads': 4, 'head_dim': 6, 'state': 1, 'taps': 1},
        'mixer.taps is 1; accepted: 2',
    ),
    (
        {'kind': 'mamba2', 'heads': 4, 'head_dim': 6, 'state': 1, 'groups': 3},
        'mixer.groups is 3; heads, 4, must be a multiple',
    ),
    (
        {'kind': 'mamba2', 'heads': 4, 'head_dim': 6, 'state': 1, 'most_step': 0.0},
        'mixer.most_step is 0.0; it must be finite and above least_step, 0',
    ),
    (
        {'kind': 'mamba2', 'heads': 4, 'head_dim': 6, 'state': 1, 'least_step': -1.0},
        'mixer.least_step is -1.0; it must be finite',
    ),
])  # fmt: skip
def test_sections_that_make_none_are_refused(section: dict, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        from_section(section, 'mixer')
    assert message in str(refusal.value)


@pytest.mark.parametrize(('make', 'message'), [
    (lambda: LayerKind(mixer=None, mlp=False), 'mlp is False; the layer has no mixer either'),
    (lambda: LayerKind(mixer=MIXER, window=4), 'window is 4; the layer has no attention'),
    (lambda: LayerKind(mixer=None, kv_heads=2), 'kv_heads is 2; the layer has no attention'),
    (lambda: LayerKind(mlp=False, mlp_width=9), 'mlp_width is 9; the layer has no MLP'),
    (lambda: tiny.model(pattern=(LayerKind(mixer=MIXER),)), 'none of its layers has attention'),
    (lambda: dataclasses.replace(HYBRID, causal=False), 'see earlier tokens alone'),
])  # fmt: skip
def test_layers_that_cannot_be_are_refused(make: Any, message: str) -> None:
    with pytest.raises(FieldError) as refusal:
        make()
    assert message in str(refusal.value)
