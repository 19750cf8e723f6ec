"""Bad-step guard: skips updates with a non-finite loss or gradient, or a loss spike."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nope import sharding
from nope.runtime.libraries import optax

DECAY = 0.98  # of the running mean and deviation of the loss: some fifty steps
LEARNING = 50  # good steps before a loss is held against those before it


class GuardState(NamedTuple):
    """Optimizer state with loss statistics. inner: state of the guarded optimizer. mean, variance:
    running, over the loss of good steps. good: number of good steps."""

    inner: optax.OptState
    mean: jax.Array
    variance: jax.Array
    good: jax.Array


def is_bad(state: Any, loss: jax.Array, grad_norm: jax.Array, spike: float | None) -> jax.Array:
    """Whether a step is bad, a bool array. Its loss or gradient norm is not finite, or its loss is
    `spike` standard deviations above the running mean. Without `spike` there is no such bound; else
    `state` is a `GuardState`."""
    bad = ~(jnp.isfinite(loss) & jnp.isfinite(grad_norm))
    if spike is None:
        return bad
    bound = state.mean + spike * jnp.sqrt(state.variance)
    return bad | ((state.good >= LEARNING) & (loss > bound))


def guarded(
    inner: optax.GradientTransformation, spike: float | None
) -> optax.GradientTransformationExtraArgs:
    """Optimizer `inner` whose state a bad step leaves unchanged, with a zero update.

    update takes `loss` and `grad_norm`, float32 scalars.
    """

    def init(params: optax.Params) -> GuardState:
        # An array each: a training step donates them.
        mean, variance = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.float32)
        return GuardState(inner.init(params), mean, variance, jnp.zeros((), jnp.int32))

    def update(
        updates: optax.Updates,
        state: GuardState,
        params: optax.Params | None = None,
        *,
        loss: jax.Array,
        grad_norm: jax.Array,
        **_: Any,
    ) -> tuple[optax.Updates, GuardState]:
        bad = is_bad(state, loss, grad_norm, spike)
        found, inner_state = inner.update(updates, state.inner, params)
        # The running mean and variance with one more loss; the first ones weigh equally.
        weight = jnp.maximum(1 - DECAY, 1 / (state.good + 1))
        step = loss - state.mean
        mean = state.mean + weight * step
        variance = (1 - weight) * (state.variance + weight * jnp.square(step))
        followed = GuardState(inner_state, mean, variance, state.good + 1)
        kept = jax.tree.map(lambda old, new: jnp.where(bad, old, new), state, followed)
        return jax.tree.map(lambda u: jnp.where(bad, jnp.zeros_like(u), u), found), kept

    return optax.GradientTransformationExtraArgs(init, update)


def restarted(state: Any) -> Any:
    """The optimizer state with loss statistics as before the first step, for a loss that is about
    to be another one; a state without them as it is. The arrays lie where they lay."""
    if not isinstance(state, GuardState):
        return state

    def zero(array: jax.Array) -> jax.Array:
        return sharding.put(np.zeros(array.shape, array.dtype), array.sharding)

    return state._replace(
        mean=zero(state.mean), variance=zero(state.variance), good=zero(state.good)
    )
