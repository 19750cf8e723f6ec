"""Bad steps: what counts as one, and that it leaves the optimizer as it was."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from nope.training.guard import DECAY, LEARNING, GuardState, guarded, is_bad, restarted
from tests import tiny

PARAMS = {'a': jnp.array([1.0, -2.0]), 'b': jnp.ones((2, 2))}
GRADIENT = jax.tree.map(lambda p: 0.5 * p + 1, PARAMS)


def follow(losses: np.ndarray, spike: float | None = None) -> GuardState:
    transform = guarded(optax.sgd(0.1), spike)
    state = transform.init(PARAMS)
    update = jax.jit(
        lambda state, loss: transform.update(
            GRADIENT, state, PARAMS, loss=loss, grad_norm=jnp.float32(1)
        )[1]
    )
    for loss in losses:
        state = update(state, jnp.float32(loss))
    return state


@pytest.mark.parametrize(
    ('loss', 'norm'), [(np.nan, 1.0), (np.inf, 1.0), (2.0, np.nan), (2.0, np.inf)]
)
def test_a_bad_step_changes_nothing(loss: float, norm: float) -> None:
    transform = guarded(optax.adamw(0.1), None)
    state = transform.init(PARAMS)
    bad = jax.tree.map(lambda g: g * jnp.nan, GRADIENT)
    updates, after = transform.update(
        bad, state, PARAMS, loss=jnp.float32(loss), grad_norm=jnp.float32(norm)
    )
    tiny.assert_same(updates, jax.tree.map(jnp.zeros_like, PARAMS))
    tiny.assert_same(after, state)


def test_a_good_step_is_the_optimizers_own() -> None:
    inner = optax.adamw(0.1)
    transform = guarded(inner, None)
    expected, moments = inner.update(GRADIENT, inner.init(PARAMS), PARAMS)
    updates, after = transform.update(
        GRADIENT, transform.init(PARAMS), PARAMS, loss=jnp.float32(2), grad_norm=jnp.float32(1)
    )
    tiny.assert_same(updates, expected)
    tiny.assert_same(after.inner, moments)
    assert int(after.good) == 1


def test_the_running_mean_and_deviation_are_those_of_the_losses() -> None:
    """Of the first ones equally, then with a weight that decays."""
    losses = np.random.default_rng(0).normal(3.0, 0.2, 40)
    state = follow(losses)
    np.testing.assert_allclose(state.mean, losses.mean(), rtol=1e-5)
    np.testing.assert_allclose(state.variance, losses.var(), rtol=1e-4)
    later = follow(np.concatenate([losses, np.full(400, 1.0)]))
    np.testing.assert_allclose(later.mean, 1.0, atol=5 * DECAY**400 + 1e-3)


def test_a_jump_is_bad_once_the_usual_is_known() -> None:
    losses = np.random.default_rng(0).normal(3.0, 0.1, LEARNING)
    for seen, expected in ((LEARNING - 1, False), (LEARNING, True)):
        state = follow(losses[:seen], spike=6.0)
        assert bool(is_bad(state, jnp.float32(4.0), jnp.float32(1), 6.0)) == expected
    assert not is_bad(state, jnp.float32(3.2), jnp.float32(1), 6.0)
    assert not is_bad(state, jnp.float32(4.0), jnp.float32(1), None)
    assert not is_bad(state, jnp.float32(1.0), jnp.float32(1), 6.0)


def test_after_a_restart_the_loss_is_new_and_the_optimizer_is_not() -> None:
    state = follow(np.random.default_rng(0).normal(3.0, 0.1, LEARNING), spike=6.0)
    fresh, jump = restarted(state), (jnp.float32(4.0), jnp.float32(1))
    assert is_bad(state, *jump, 6.0) and not is_bad(fresh, *jump, 6.0)
    assert fresh.inner is state.inner
    tiny.assert_same(fresh, follow(np.array([])))
