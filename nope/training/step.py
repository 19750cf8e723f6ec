"""One training step as a pure function: loss, gradients of what trains, update."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nope import losses
from nope.data.batch import Batch
from nope.model import ModelConfig, apply
from nope.model.dropout import row_keys
from nope.runtime.libraries import optax
from nope.training import optim, remat
from nope.training.entropy import entropy_gap, head_gaps, row_entropies
from nope.training.guard import is_bad
from nope.training.state import TrainState
from nope.variables import TABLE, Variables, lam_of, with_lam

Metrics = dict[str, jax.Array]
Step = Callable[..., tuple[TrainState, Metrics]]


def batch_loss(
    config: ModelConfig,
    variables: Variables,
    batch: Batch,
    total: jax.Array | None = None,
    keys_B: jax.Array | None = None,
    penalty: float = 0.0,
) -> jax.Array:
    """Weighted mean cross-entropy of the targets (nats), float32 scalar. `penalty` times the mean
    attention entropy is added; there a row has the weight of its targets.

    batch: arrays [B, T]. Without segments attention crosses the boundaries of documents.
    total: see `nope.losses.mean_loss`. keys_B: typed keys of the rows' dropout; None for none.
    """
    output = apply(
        config,
        variables,
        batch.tokens,
        segments_BT=batch.segments,
        positions_BT=batch.positions,
        keys_B=keys_B,
        entropy=bool(penalty),
    )
    nll_BT = losses.token_loss(output.hidden, output.head, batch.targets, cap=config.logit_cap)
    loss = losses.mean_loss(nll_BT, batch.weights, total)
    if output.entropy is None:
        return loss
    weights_B1 = None if batch.weights is None else jnp.sum(batch.weights, axis=1, keepdims=True)
    entropy_B1 = row_entropies(config, output.entropy)[:, None]
    return loss + penalty * losses.mean_loss(entropy_B1, weights_B1, total)


def make_step(config: ModelConfig, optimizer: optim.OptimizerConfig) -> Step:
    """The pure step: (state, frozen, batch of arrays [A, B / A, T], and with dropout a seed) ->
    (state, metrics).

    frozen: the collection that does not train, {'params': ...} or {'lam': ...}, or {} where all
    does. A > 1 accumulates gradients over A micro-batches. Gradients are taken for what trains and
    for nothing else. Metrics are float32 scalars: loss, grad_norm (before clipping), learning_rate;
    and bad (`nope.training.guard`). The loss is the weighted mean over the batch in nats per token
    (nats^2 with an `entropy_length`), with its `entropy_penalty`. Where all weights are 0, so are
    the loss and the gradients. seed: uint32 scalar if the step drops (`drops`). Its masks follow
    the seed, the number of the step and the number of a row in the whole batch.
    """
    config = remat.of_step(config, optimizer.trains)
    transform = optax.with_extra_args_support(optim.make_optimizer(optimizer))
    schedule = optim.learning_rate(optimizer)

    def used(trained: Variables, frozen: Variables) -> Variables:
        variables = {**frozen, **trained}
        if optimizer.straight_through:
            lam_LN = optim.clamp_straight_through(lam_of(variables), optimizer.bound)
            variables = with_lam(variables, lam_LN)
        if optimizer.tied:
            acts_LN = config.heads_with_lam
            variables = with_lam(variables, optim.tied_lam(lam_of(variables), acts_LN))
        if optimizer.trains == TABLE:
            variables = optim.with_frozen_weights(variables)
        return variables

    def loss_of(
        trained: Variables,
        frozen: Variables,
        micro: Batch,
        total: jax.Array | None,
        keys_B: jax.Array | None,
        gap_LN: jax.Array | None,
    ) -> jax.Array:
        variables = used(trained, frozen)
        if optimizer.entropy_length is not None:
            return entropy_gap(config, variables, micro, optimizer.entropy_length, gap_LN)
        penalty = optimizer.entropy_penalty
        return batch_loss(config, variables, micro, total, keys_B, penalty)

    def gap_of(state: TrainState, frozen: Variables, batch: Batch) -> jax.Array | None:
        """Differences of entropy of a whole batch in several micro-batches; None for one."""
        length = optimizer.entropy_length
        if length is None or batch.tokens.shape[0] == 1:
            return None
        variables = used(state.trained, frozen)
        gaps_ALN = jax.lax.map(lambda micro: head_gaps(config, variables, micro, length), batch)
        return jnp.mean(gaps_ALN, axis=0)

    def step(
        state: TrainState, frozen: Variables, batch: Batch, seed: jax.Array | None = None
    ) -> tuple[TrainState, Metrics]:
        variables = {**frozen, **state.trained}
        of_trained = functools.partial(jax.value_and_grad(loss_of), state.trained, frozen)
        keys_AB = None
        if drops(config, optimizer):
            assert seed is not None
            parts, rows = batch.tokens.shape[:2]
            numbers_AB = jnp.arange(parts * rows, dtype=jnp.int32).reshape(parts, rows)
            keys_AB = row_keys(seed, state.step, numbers_AB)
        of_micro = functools.partial(of_trained, gap_LN=gap_of(state, frozen, batch))
        shares = optimizer.entropy_length is None
        loss, gradient = _accumulate(of_micro, batch, keys_AB, shares=shares)
        gradients = {**jax.tree.map(jnp.zeros_like, variables), **gradient}
        measured = {'loss': loss, 'grad_norm': optax.tree.norm(gradient)}
        more = measured if optimizer.guarded else {}
        updates, opt_state = transform.update(gradients, state.opt_state, variables, **more)
        made = state.step  # updates; the schedule does not count steps that were skipped
        if optimizer.guarded:
            made = optax.tree_utils.tree_get_all_with_path(state.opt_state, 'count')[0][1]
        metrics = {
            **measured,
            'learning_rate': schedule(made),
            'bad': is_bad(state.opt_state, **measured, spike=optimizer.spike),
        }
        trained = optax.apply_updates(state.trained, {n: updates[n] for n in state.trained})
        return TrainState(state.step + 1, trained, opt_state), metrics

    return step


def drops(config: ModelConfig, optimizer: optim.OptimizerConfig) -> bool:
    """Whether a step of the model has dropout: where the weights train, not where lambda or the
    positions alone do."""
    return config.drops and optimizer.trains in ('params', 'all')


def _accumulate(
    value_and_grad: Callable[..., tuple[jax.Array, Variables]],
    batch: Batch,
    keys_AB: jax.Array | None,
    *,
    shares: bool,
) -> tuple[jax.Array, Variables]:
    """Loss and gradient of a batch, from its micro-batches along the first axis of the arrays, each
    with the keys of its rows where there are some.

    With weights a micro-batch gives its share sum(w nll) / W, W being the weight of the whole
    batch, and shares add up: a mean of means would favour the targets of light micro-batches.
    Without weights all have as many targets and the mean of their means is the mean; it is taken so
    because the other order rounds otherwise. shares: False for a loss that is a mean over rows
    whatever their weights.
    """
    weights = batch.weights if shares else None
    total = None if weights is None else jnp.sum(weights, dtype=jnp.float32)
    count = batch.tokens.shape[0]
    first, keys_B = jax.tree.map(lambda array: array[0], (batch, keys_AB))
    if count == 1:
        return value_and_grad(first, total, keys_B)
    zeros = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        jax.eval_shape(value_and_grad, first, total, keys_B),
    )

    def add(sums: tuple, part: Any) -> tuple[tuple, None]:
        micro, keys_B = part
        return jax.tree.map(jnp.add, sums, value_and_grad(micro, total, keys_B)), None

    sums, _ = jax.lax.scan(add, zeros, (batch, keys_AB))
    return sums if total is not None else jax.tree.map(lambda leaf: leaf / count, sums)
