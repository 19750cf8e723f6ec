"""One training step as a pure function: loss, gradients of what trains, update."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from nope import losses
from nope.model import ModelConfig, apply
from nope.training import optim
from nope.training.guard import is_bad
from nope.training.state import TrainState
from nope.variables import Variables, lam_of, with_lam

Metrics = dict[str, jax.Array]
Step = Callable[[TrainState, Variables, jax.Array], tuple[TrainState, Metrics]]


def block_loss(config: ModelConfig, variables: Variables, blocks: jax.Array) -> jax.Array:
    """Mean next-token cross-entropy (nats) over blocks of tokens [B, T + 1] int32.

    Documents are not masked from each other: attention crosses their boundaries.
    """
    tokens_BT, targets_BT = blocks[:, :-1], blocks[:, 1:]
    output = apply(config, variables, tokens_BT)
    return losses.mean_loss(losses.token_loss(output.hidden, output.head, targets_BT))


def make_step(config: ModelConfig, optimizer: optim.OptimizerConfig) -> Step:
    """The pure step: (state, frozen, blocks [A, B / A, T + 1]) -> (state, metrics).

    frozen: the collection that does not train, {'params': ...} or {'lam': ...}. A > 1 accumulates
    gradients over A micro-batches. Gradients are taken for the collection that trains and for
    nothing else. metrics: loss (nats per token), grad_norm (before clipping), learning_rate,
    float32 scalars; bad, whether the step is one (`nope.training.guard`).
    """
    transform = optax.with_extra_args_support(optim.make_optimizer(optimizer))
    schedule = optim.learning_rate(optimizer)
    trains = optimizer.trains

    def loss_of(trained: Variables, variables: Variables, blocks: jax.Array) -> jax.Array:
        variables = {**variables, trains: trained}
        if optimizer.straight_through:
            lam_LN = optim.clamp_straight_through(lam_of(variables), optimizer.bound)
            variables = with_lam(variables, lam_LN)
        return block_loss(config, variables, blocks)

    def step(state: TrainState, frozen: Variables, blocks: jax.Array) -> tuple[TrainState, Metrics]:
        variables = {**frozen, **state.trained}
        loss, gradient = _accumulate(
            lambda micro: jax.value_and_grad(loss_of)(variables[trains], variables, micro), blocks
        )
        gradients = {**jax.tree.map(jnp.zeros_like, variables), trains: gradient}
        measured = {'loss': loss, 'grad_norm': optax.tree.norm(gradient)}
        more = measured if optimizer.guarded else {}
        updates, opt_state = transform.update(gradients, state.opt_state, variables, **more)
        metrics = {
            **measured,
            'learning_rate': schedule(state.step),
            'bad': is_bad(state.opt_state, **measured, spike=optimizer.spike),
        }
        trained = optax.apply_updates(state.trained, {trains: updates[trains]})
        return TrainState(state.step + 1, trained, opt_state), metrics

    return step


def _accumulate(
    value_and_grad: Callable[[jax.Array], tuple[jax.Array, Variables]], blocks: jax.Array
) -> tuple[jax.Array, Variables]:
    """Mean loss and gradient over the micro-batches blocks[0], blocks[1], ..."""
    if blocks.shape[0] == 1:
        return value_and_grad(blocks[0])
    zeros = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(value_and_grad, blocks[0])
    )

    def add(total: tuple, micro: jax.Array) -> tuple[tuple, None]:
        return jax.tree.map(jnp.add, total, value_and_grad(micro)), None

    total, _ = jax.lax.scan(add, zeros, blocks)
    return jax.tree.map(lambda leaf: leaf / blocks.shape[0], total)
