"""Forget gates: logits that fade with what was read since the key."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Mask, attention
from nope.model import LayerKind
from nope.model.attention.by_head import Way, attend_by_kind
from nope.model.attention.forget_gates import forgotten
from nope.model.cache import LayerCache
from nope.positions import ForgetGate, Split
from tests import tiny
from tests.model.programs import T, loss_and_gradients, run

N = tiny.MODEL.heads
TOKENS = tiny.tokens(2, T)
GATED = tiny.model(layers=1, position=ForgetGate(start=1.5))


def normed(x_BTD: jax.Array, weight_D: jax.Array) -> jax.Array:
    mean_square = jnp.mean(x_BTD**2, axis=-1, keepdims=True)
    return x_BTD / jnp.sqrt(mean_square + GATED.norm_epsilon) * weight_D


def test_logits_fade_by_every_gate_between_key_and_query() -> None:
    """Entropies of the layer, from the definition: the product of the gates of j + 1 .. i."""
    params = tiny.variables(GATED)['params']
    layer = jax.tree.map(lambda leaf: leaf[0], params['layers'])
    x_BTD = normed(params['embedding'][TOKENS], layer['attention_norm']['scale'])
    weights = layer['attention']
    q_BTNH = jnp.einsum('BTD,DNH->BTNH', x_BTD, weights['query'])
    k_BTNH = jnp.einsum('BTD,DKH->BTKH', x_BTD, weights['key']).repeat(2, axis=2)
    gates_BTN = jax.nn.sigmoid(x_BTD @ weights['forget']['weight'] + weights['forget']['bias'])
    expected = np.zeros((2, N, T))
    for i in range(T):
        left_BNj = np.stack(
            [np.prod(np.asarray(gates_BTN, np.float64)[:, j + 1 : i + 1], 1) for j in range(i + 1)],
            axis=-1,
        )
        logits = jnp.einsum('BNH,BjNH->BNj', q_BTNH[:, i], k_BTNH[:, : i + 1])
        unnormalised = np.exp(np.asarray(logits, np.float64) / 8**0.5) * left_BNj
        weights_BNj = unnormalised / unnormalised.sum(-1, keepdims=True)
        expected[:, :, i] = -(weights_BNj * np.log(weights_BNj)).sum(-1)
    found = run(GATED, tiny.variables(GATED), TOKENS).entropy
    assert found is not None
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    'position', [ForgetGate(), Split(ForgetGate()), Split(ForgetGate(), window=5)], ids=str
)
@pytest.mark.parametrize('first', [None, 5], ids=['whole', 'cached'])
def test_largest_logits_are_those_of_faded_keys(
    position: ForgetGate | Split, first: int | None
) -> None:
    """max_j (q_i . k_j + c_i - c_j), by the definition; in a cache of more slots than tokens."""
    rng = np.random.default_rng(0)
    queries, at = (T, 0) if first is None else (3, first)
    q, k = (rng.normal(size=(2, t, n, 8)).astype('float32') for t, n in ((queries, N), (T, N // 2)))
    gated = N if isinstance(position, ForgetGate) else N // 2
    sums = -np.cumsum(rng.uniform(0.2, 1.2, size=(2, T, gated)), axis=1).astype('float32')
    found = attend_by_kind(
        Way(functools.partial(attention, max_logit=True)),
        LayerKind(position),
        *map(jnp.asarray, (q, k, k)),
        Mask(offset=first),
        None,
        jnp.asarray(sums),
    ).output.max_logit
    logits = np.einsum('BTNH,BSNH->BNTS', q, k.repeat(2, axis=2))
    c = sums.swapaxes(1, 2)
    logits[:, :gated] += c[:, :, at : at + queries, None] - c[:, :, None]
    distance = at + np.arange(queries)[:, None] - np.arange(T)
    near = np.full(N, T)
    near[:gated] = position.local_window or T
    seen = (distance >= 0) & (distance < near[:, None, None])
    expected = np.where(seen, logits, -np.inf).max(axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_open_gates_leave_a_model_without_position() -> None:
    variables = tiny.variables(GATED)
    layers = variables['params']['layers']
    open_N = jnp.full((1, N), 60.0)
    closed = {'weight': jnp.zeros((1, GATED.width, N)), 'bias': open_N}
    attention = {**layers['attention'], 'forget': closed}
    params = {**variables['params'], 'layers': {**layers, 'attention': attention}}
    without = {key: value for key, value in layers['attention'].items() if key != 'forget'}
    nope = {**variables['params'], 'layers': {**layers, 'attention': without}}
    found = run(GATED, {**variables, 'params': params}, TOKENS)
    plain = run(tiny.model(layers=1), {**variables, 'params': nope}, TOKENS)
    tiny.assert_close(found, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    'position', [ForgetGate(), Split(ForgetGate()), Split(ForgetGate(), window=5)], ids=str
)
def test_gates_learn(position: ForgetGate | Split) -> None:
    """Both their weights and their biases, in every gated head."""
    config = tiny.model(position=position)
    _, gradients = loss_and_gradients(config, tiny.variables(config), tiny.tokens(2, T + 1))
    forget = gradients['params']['layers']['attention']['forget']
    gated = N if isinstance(position, ForgetGate) else N // 2
    assert forget['bias'].shape == (config.layers, gated)
    assert bool(jnp.all(forget['bias'] != 0))
    assert bool(jnp.all(jnp.any(forget['weight'] != 0, axis=1)))


def test_documents_in_a_row_do_not_fade_each_other() -> None:
    """Only differences of the sums count, and those lie inside of a document."""
    segments = np.where(np.arange(T) < 5, 1, 2)[None].repeat(2, axis=0)
    packed = run(GATED, tiny.variables(GATED), TOKENS, segments)
    alone = run(GATED, tiny.variables(GATED), TOKENS[:, 5:])
    np.testing.assert_allclose(packed.hidden[:, 5:], alone.hidden, rtol=1e-4, atol=1e-5)


def test_gates_of_padding_before_a_row_leave_its_sums_alone() -> None:
    """Bit for bit: otherwise a short prompt beside a long one would lose digits of its logits."""
    rng = np.random.default_rng(0)
    gates = -rng.uniform(0, 8, size=(1, 4096, 2)).astype(np.float32)
    segments = (np.arange(4096) >= 4090)[None].astype(np.int32)
    shape = (1, 4096, 2, 1)
    cached = LayerCache(jnp.zeros(shape), jnp.zeros(shape), jnp.zeros(shape))
    sums = [
        np.asarray(forgotten(jnp.asarray(x), cached, 0, jnp.asarray(segments)))[:, 4090:]
        for x in (gates, np.where(segments[..., None] > 0, gates, -1.0).astype(np.float32))
    ]
    np.testing.assert_array_equal(*sums)
    alone = np.cumsum(gates[:, 4090:].astype(np.float64), axis=1)
    np.testing.assert_allclose(sums[0], alone, rtol=1e-6)
