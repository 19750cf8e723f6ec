"""Compiled steps of a run: which model each trains, and whether it looks at attention."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.data.batch import Batch
from nope.model import ModelConfig, apply
from nope.runtime import hardware
from nope.training import optim, remat
from nope.training.config import Compute, Earlier, TrainConfig
from nope.training.state import TrainState
from nope.training.step import Metrics, drops, make_step
from nope.variables import Variables


@dataclasses.dataclass(frozen=True)
class StepProgram:
    """Compiled program of a step. early: that of the earlier model of the run. compiled: an earlier
    step of this process ran the same."""

    length: int
    early: bool
    monitored: bool
    compiled: bool

    @property
    def usual(self) -> bool:
        """True where it takes as long as most steps do."""
        return self.compiled and not self.monitored


class Stepping:
    """The steps of a run, each of which trains the model that it is the turn of.

    earlier: model of the first steps. seed: of dropout. Every `compute.monitor`-th step also looks
    at attention, before the next batch, with the weights that it leaves.
    """

    def __init__(
        self,
        model: ModelConfig,
        config: TrainConfig,
        compute: Compute,
        mesh: Mesh,
        state: TrainState,
        *,
        earlier: Earlier | None = None,
        seed: int = 0,
    ) -> None:
        self._on = config, compute, mesh
        self._first_steps = 0 if earlier is None else earlier.steps
        self._models = (model,) if earlier is None else (model, earlier.model)
        self._steps = tuple(step_on(m, config, compute, mesh, state, seed) for m in self._models)
        self._ran: set[tuple[int, bool, bool]] = set()

    def program(self, step: int, length: int) -> StepProgram:
        """Program of the step after `step` others, on rows of `length` tokens."""
        every = self._on[1].monitor
        asked = length, step < self._first_steps, every > 0 and (step + 1) % every == 0
        return StepProgram(*asked, compiled=asked in self._ran)

    def take(
        self, program: StepProgram, state: TrainState, frozen: Variables, batch: Batch
    ) -> tuple[TrainState, Metrics, Metrics]:
        """The next state, metrics of the step, and metrics of attention by layer if the program
        looks. The given state is used up."""
        state, metrics = self._steps[program.early](state, frozen, batch)
        by_layer: Metrics = {}
        if program.monitored:
            optimizer = self._on[0].optimizer
            variables = optim.as_used(optimizer, {**frozen, **state.trained})
            by_layer = look_at(self._models[program.early], *self._on, variables, batch)
        self._ran.add((program.length, program.early, program.monitored))
        return state, metrics, by_layer


def step_on(
    model: ModelConfig,
    config: TrainConfig,
    compute: Compute,
    mesh: Mesh,
    state: TrainState,
    seed: int,
) -> Callable[[TrainState, Variables, Batch], tuple[TrainState, Metrics]]:
    """One step, from this process's rows of its batch; the state that it is given is used up, the
    frozen variables are not. seed: of dropout."""
    seeds = (np.uint32(seed),) if drops(model, config.optimizer) else ()
    chosen: dict[int, Any] = {}  # by the length of rows

    def take_step(state: TrainState, frozen: Variables, batch: Batch) -> tuple[TrainState, Metrics]:
        placed = _placed(config, compute, mesh, batch)
        arguments, length = (state, frozen, placed, *seeds), placed.tokens.shape[-1]
        with sharding.use(mesh):
            if length not in chosen:
                chosen[length] = fitting_step(*arguments)
            return chosen[length](*arguments)

    def fitting_step(state: TrainState, *others: Any) -> Any:
        def lowered(model: ModelConfig) -> jax.stages.Lowered:
            return jitted_step(model, config.optimizer, state).lower(state, *others)

        capacity = hardware.memory_of(mesh.local_devices[0])
        fitted = remat.fitting(model, config.optimizer.trains, lowered, capacity)
        return jitted_step(fitted, config.optimizer, state)

    return take_step


def look_at(
    model: ModelConfig,
    config: TrainConfig,
    compute: Compute,
    mesh: Mesh,
    variables: Variables,
    batch: Batch,
) -> Metrics:
    """`attention_metrics` of this process's rows of a batch and those of all others."""
    placed = _placed(config, compute, mesh, batch)
    with sharding.use(mesh):
        return attention_metrics(model, variables, placed)


def _placed(config: TrainConfig, compute: Compute, mesh: Mesh, batch: Batch) -> Batch:
    """A batch on all devices, from this process's rows of it."""
    micro_batches = compute.micro_batches(config.batch_size, mesh)
    placed: Batch = sharding.place_micro_batches(mesh, micro_batches, config.batch_size, batch)
    return placed


def jitted_step(model: ModelConfig, optimizer: optim.OptimizerConfig, state: TrainState) -> Any:
    """The jitted step, whose results lie as the state does (arrays or their descriptions). Runs of
    one process that differ in seed or text alone share it, in time and memory: XLA keeps some of
    every compilation."""
    shardings, tree = jax.tree.flatten(jax.tree.map(lambda leaf: leaf.sharding, state))
    return _jitted_step(model, optimizer, tuple(shardings), tree)


@functools.lru_cache(maxsize=8)
def _jitted_step(
    model: ModelConfig,
    optimizer: optim.OptimizerConfig,
    shardings: tuple[jax.sharding.Sharding, ...],
    tree: jax.tree_util.PyTreeDef,
) -> Any:
    placed = jax.tree.unflatten(tree, shardings)
    return jax.jit(make_step(model, optimizer), donate_argnums=0, out_shardings=(placed, None))


@functools.partial(jax.jit, static_argnums=0)
def attention_metrics(config: ModelConfig, variables: Variables, batch: Batch) -> Metrics:
    """Attention of every layer on the first micro-batch of a batch [A, B / A, T], float32 [L] each.

    entropy: mean over rows, heads and positions, nats. max_logit: the largest visible logit. Its
    growth precedes a loss that diverges. Targets and weights of the batch are not used: what fills
    it up counts too.
    """
    micro: Batch = jax.tree.map(lambda array: array[0], batch)
    output = apply(
        config,
        variables,
        micro.tokens,
        segments_BT=micro.segments,
        positions_BT=micro.positions,
        entropy=True,
        max_logit=True,
    )
    assert output.entropy is not None and output.max_logit is not None
    return {
        'entropy': jnp.mean(output.entropy, axis=(1, 2, 3)),
        'max_logit': jnp.max(output.max_logit, axis=(1, 2, 3)),
    }
