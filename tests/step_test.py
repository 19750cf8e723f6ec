from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from nope.losses import token_loss
from nope.model import ModelConfig, Transformer
from nope.optim import OptimizerConfig, make_optimizer
from nope.state import TrainState, fresh_state, lam_of, with_lam
from nope.step import Metrics, block_loss, make_step
from tests import tiny

T = 8
PRETRAIN = OptimizerConfig(learning_rate=1e-2, warmup_steps=5, decay_steps=200)
SEARCH = dataclasses.replace(PRETRAIN, trains='lam', warmup_steps=0, clip=1e9)


def start(optimizer: OptimizerConfig) -> TrainState:
    return fresh_state(tiny.varied_lam(), make_optimizer(optimizer), tiny.mesh())


def once(optimizer: OptimizerConfig, blocks: Any, config: ModelConfig = tiny.MODEL) -> tuple:
    return jax.jit(make_step(config, optimizer))(start(optimizer), blocks)


@pytest.fixture(scope='module')
def loss_and_gradients() -> tuple:
    """Of the first batch, with respect to everything."""
    blocks = tiny.tokens(8, T + 1)
    return jax.jit(jax.value_and_grad(lambda v: block_loss(tiny.MODEL, v, blocks)))(
        tiny.varied_lam()
    )


def test_the_loss_is_the_mean_cross_entropy_of_the_next_token(loss_and_gradients: tuple) -> None:
    blocks, variables = tiny.tokens(8, T + 1), tiny.varied_lam()
    output = Transformer(tiny.MODEL).apply(variables, blocks[:, :-1])
    logits_BTV = np.asarray(output.hidden, np.float64) @ np.asarray(output.head, np.float64)
    log_sum_BT = np.log(np.exp(logits_BTV).sum(-1))
    picked_BT = np.take_along_axis(logits_BTV, blocks[:, 1:, None], axis=-1)[..., 0]
    np.testing.assert_allclose(loss_and_gradients[0], np.mean(log_sum_BT - picked_BT), rtol=1e-5)
    nll_BT = token_loss(output.hidden, output.head, jnp.asarray(blocks[:, 1:]))
    np.testing.assert_allclose(nll_BT, log_sum_BT - picked_BT, rtol=1e-5, atol=1e-5)


def test_one_step(loss_and_gradients: tuple) -> None:
    """Metrics are those of the batch, and the whole state moves on by one."""
    constant = dataclasses.replace(PRETRAIN, schedule='linear_tail', warmup_steps=0)
    loss, gradients = loss_and_gradients
    state, metrics = once(constant, tiny.tokens(8, T + 1)[None])
    assert state.step == 1
    assert {name: m.dtype.name for name, m in metrics.items()} == dict.fromkeys(
        ('loss', 'grad_norm', 'learning_rate'), 'float32'
    )
    norm = optax.tree.norm(gradients['params'])
    assert norm > 0.1
    np.testing.assert_allclose(metrics['loss'], loss, rtol=1e-6)
    np.testing.assert_allclose(metrics['grad_norm'], norm, rtol=1e-5)
    np.testing.assert_allclose(metrics['learning_rate'], 1e-2, rtol=1e-6)
    tiny.assert_same(state.variables['lam'], tiny.varied_lam()['lam'])
    scale = min(1.0, 1 / float(norm))
    first_moment = optax.tree_utils.tree_get(state.opt_state, 'mu')['params']
    expected = jax.tree.map(lambda g: 0.1 * scale * g, gradients['params'])
    tiny.assert_close(first_moment, expected, rtol=1e-4, atol=1e-7)


def test_accumulated_gradients_are_those_of_one_batch(loss_and_gradients: tuple) -> None:
    del loss_and_gradients
    blocks = tiny.tokens(8, T + 1)
    whole, whole_metrics = once(SEARCH, blocks[None])
    parts, parts_metrics = once(SEARCH, blocks.reshape(4, 2, T + 1))
    tiny.assert_close(parts_metrics, whole_metrics, rtol=1e-5)
    moments = [optax.tree_utils.tree_get(s.opt_state, 'mu')['lam'] for s in (parts, whole)]
    tiny.assert_close(*moments, rtol=1e-4, atol=1e-7)


def test_accumulated_pretraining_gradients_are_those_of_one_batch(
    loss_and_gradients: tuple,
) -> None:
    state, metrics = once(
        dataclasses.replace(PRETRAIN, clip=1e9), tiny.tokens(8, T + 1).reshape(4, 2, -1)
    )
    np.testing.assert_allclose(metrics['loss'], loss_and_gradients[0], rtol=1e-5)
    first_moment = optax.tree_utils.tree_get(state.opt_state, 'mu')['params']
    expected = jax.tree.map(lambda g: 0.1 * g, loss_and_gradients[1]['params'])
    tiny.assert_close(first_moment, expected, rtol=1e-4, atol=1e-7)


def test_the_search_takes_the_gradient_of_lambda_alone(loss_and_gradients: tuple) -> None:
    _, gradients = loss_and_gradients
    state, metrics = once(SEARCH, tiny.tokens(8, T + 1)[None])
    np.testing.assert_allclose(metrics['grad_norm'], np.linalg.norm(lam_of(gradients)), rtol=1e-5)
    first_moment = optax.tree_utils.tree_get(state.opt_state, 'mu')['lam']
    np.testing.assert_allclose(first_moment['head'], 0.1 * lam_of(gradients), rtol=1e-4, atol=1e-7)
    tiny.assert_same(state.variables['params'], tiny.variables()['params'])
    assert np.all(lam_of(state.variables) != lam_of(tiny.varied_lam()))


def test_a_straight_through_search_sees_lambda_clamped() -> None:
    """The loss is that at the bound, the gradient passes it, and the copy goes below it."""
    free, through = (
        dataclasses.replace(SEARCH, bound=bound, straight_through=bound is not None)
        for bound in (None, 1.0)
    )
    blocks = tiny.tokens(8, T + 1)[None]
    low = with_lam(tiny.variables(), jnp.full((2, 4), 0.4))
    at_bound = with_lam(tiny.variables(), jnp.ones((2, 4)))
    states, metrics = [], []
    for optimizer, variables in ((through, low), (free, at_bound)):
        state = fresh_state(variables, make_optimizer(optimizer), tiny.mesh())
        state, measured = jax.jit(make_step(tiny.MODEL, optimizer))(state, blocks)
        states.append(state)
        metrics.append(measured)
    tiny.assert_close(*metrics, rtol=1e-6)
    moves = [lam_of(s.variables) - start for s, start in zip(states, (0.4, 1.0), strict=True)]
    np.testing.assert_allclose(*moves, atol=1e-6)
    assert np.all(lam_of(states[0].variables) < 0.5)


def test_a_rule_is_learned() -> None:
    """Counting by one, from random starts: chance is ln 64 = 4.16 nats."""
    step = jax.jit(make_step(tiny.MODEL, PRETRAIN), donate_argnums=0)
    state = start(PRETRAIN)
    losses = []
    for k in range(60):
        metrics: Metrics
        state, metrics = step(state, tiny.counting(16, T + 1, seed=k)[None])
        losses.append(float(metrics['loss']))
    assert losses[0] > 4
    assert np.mean(losses[-5:]) < 1
