"""The training loop, for pre-training and for the search of lambda alike."""

from __future__ import annotations

import dataclasses
import logging
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from clu import parameter_overview
from jax.sharding import Mesh

from nope import optim, processes, sharding
from nope.checkpoint import Checkpoints
from nope.goodput import Goodput
from nope.model import ModelConfig
from nope.profile import Profile
from nope.reporting import Reporter, Throughput
from nope.state import TrainState, Variables, fresh_state
from nope.step import make_step
from nope.watch import Watch

log = logging.getLogger(__name__)


class Interrupted(RuntimeError):
    """A stop was asked for; everything up to the last step is saved."""


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How long and on what shapes to train.

    lengths: training lengths in tokens, taken in turn: step k trains on sequences of
        lengths[k % len(lengths)] tokens, the first ones of blocks of the longest.
    keep_steps: steps whose checkpoint is never removed.
    """

    lengths: tuple[int, ...]
    batch_size: int
    steps: int
    optimizer: optim.OptimizerConfig
    keep_steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (('batch_size', self.batch_size), ('steps', self.steps)):
            if value < 1:
                raise ValueError(f'train.{name} is {value}; it must be at least 1')
        if not self.lengths or min(self.lengths) < 1:
            raise ValueError(f'train.length is {self.lengths}; it must be at least 1 token')

    @property
    def block(self) -> int:
        """The longest training length."""
        return max(self.lengths)

    @property
    def tokens(self) -> int:
        """Tokens trained on in all."""
        cycle = len(self.lengths)
        whole, rest = divmod(self.steps, cycle)
        return self.batch_size * (whole * sum(self.lengths) + sum(self.lengths[:rest]))


@dataclasses.dataclass(frozen=True)
class Compute:
    """How a run is carried out; nothing here changes what it computes but for rounding.

    mesh: of the devices. later_mesh: another one for what comes after pre-training: searches,
    fine-tuning and evaluations have few long sequences; None for the same.
    checkpoints: a folder or gs://BUCKET/FOLDER for the checkpoints of all runs, each in a folder
    of its own there; '' for the run's folder.
    accumulate: micro-batches per step of pre-training; 0 for as many as leave each batch shard
    `shard_sequences` sequences at a time.
    checkpoint_every, log_every: in steps. keep: newest checkpoints kept. threads: of the loader.
    slow_step: a step that takes so many times the median is logged. hang_seconds: after so long
    without a step the stacks of all threads are written down. profile: so many steps of each
    attempt are traced.
    """

    mesh: sharding.MeshConfig = sharding.MeshConfig()
    later_mesh: sharding.MeshConfig | None = None
    checkpoints: str = ''
    accumulate: int = 1
    shard_sequences: int = 4
    checkpoint_every: int = 500
    log_every: int = 10
    keep: int = 2
    threads: int = 1
    slow_step: float = 5.0
    hang_seconds: float = 600.0
    profile: int = 0

    def __post_init__(self) -> None:
        if self.accumulate < 0:
            raise ValueError(f'compute.accumulate is {self.accumulate}; it must be 0 or more')
        for name in ('shard_sequences', 'checkpoint_every', 'log_every', 'keep', 'threads'):
            if getattr(self, name) < 1:
                raise ValueError(f'compute.{name} is {getattr(self, name)}; it must be at least 1')
        if self.slow_step <= 1 or self.hang_seconds <= 0 or self.profile < 0:
            raise ValueError(
                f'compute.slow_step is {self.slow_step}, hang_seconds {self.hang_seconds}, profile '
                f'{self.profile}; accepted: above 1, above 0, and 0 or more'
            )

    def micro_batches(self, batch_size: int, mesh: Mesh) -> int:
        """How many micro-batches a step's batch is made of."""
        shard = batch_size // sharding.batch_parts(mesh)
        return self.accumulate or max(shard // self.shard_sequences, 1)


# Batches consumed -> from there on this process's examples (`sharding.rows_here`), [B', T + 1].
Batches = Callable[[int], Iterator[np.ndarray]]


def train(
    model: ModelConfig,
    config: TrainConfig,
    compute: Compute,
    *,
    mesh: Mesh,
    initial: Callable[[], Variables],
    batches: Batches,
    folder: pathlib.Path,
    identity: Mapping[str, Any],
    title: str,
    should_stop: Callable[[], bool] = lambda: False,
    checkpoints_in: pathlib.Path | str | None = None,
) -> Variables:
    """Trains from `initial()`, or from the newest checkpoint in `folder`, to the last step.

    Leaves in `folder`: checkpoints/ (unless they go to `checkpoints_in`), metrics.jsonl,
    tensorboard/, parameters.txt, goodput.json; bad_steps.jsonl and stacks-PROCESS.txt where there
    was cause; profile/ where asked for. A run that was stopped and started again is bitwise the
    uninterrupted one on the same devices.

    Raises TrainingDiverged (the last good checkpoint stays), Interrupted (state saved), or
    CheckpointError (the folder holds another run, or cannot be written to).
    """
    check_mesh(model, config, compute, mesh)
    accumulate = compute.micro_batches(config.batch_size, mesh)
    goodput = Goodput(folder)
    with (
        sharding.use(mesh),
        Checkpoints(
            checkpoints_in or folder / 'checkpoints',
            identity,
            keep=compute.keep,
            permanent=config.keep_steps,
        ) as checkpoints,
    ):
        with goodput.time('start'):
            state = begin(initial, config, mesh, checkpoints)
            start = int(state.step)
            if start:
                log.info('%s: going on from step %d', title, start)
            describe_parameters(state, folder)
            stream = batches(start)
            placed = jax.tree.map(lambda leaf: leaf.sharding, state)
            step_fn = jax.jit(
                make_step(model, config.optimizer), donate_argnums=0, out_shardings=(placed, None)
            )
        saved_at = {config.steps, *config.keep_steps}
        compiled: set[int] = set()
        with (
            make_reporter(model, config, compute, folder, start, title) as reporter,
            Watch(folder, slow=compute.slow_step, hang_seconds=compute.hang_seconds) as watch,
            Profile(folder / 'profile', start, compute.profile) as profile,
        ):
            for step in range(start, config.steps):
                length = config.lengths[step % len(config.lengths)]
                with goodput.time('data') as waited:
                    local = next(stream)[:, : length + 1]
                with goodput.time('step' if length in compiled else 'compile'):
                    blocks = sharding.place_micro_batches(
                        mesh, accumulate, config.batch_size, local
                    )
                    state, metrics = step_fn(state, blocks)
                    reporter.add(step + 1, metrics)

                done, stop = step + 1, should_stop()
                save = stop or done in saved_at or done % compute.checkpoint_every == 0
                if save:
                    with goodput.time('step'):
                        reporter.flush()  # nothing is saved that is not finite
                    with goodput.time('checkpoint'):
                        position = {'batches': done, 'examples': done * config.batch_size}
                        checkpoints.save(state, position)
                    goodput.write()
                watch.step(done, usual=length in compiled and not save, data_seconds=waited())
                goodput.step_done()
                profile.step(done)
                compiled.add(length)
                if stop and done < config.steps:
                    raise Interrupted(f'{title}: stopped at step {done}, saved in {folder}')
        with goodput.time('checkpoint'):
            checkpoints.wait()
    goodput.write()
    return state.variables


def begin(
    initial: Callable[[], Variables], config: TrainConfig, mesh: Mesh, checkpoints: Checkpoints
) -> TrainState:
    """The state of the newest checkpoint, else that before the first step."""
    state = fresh_state(initial(), optim.make_optimizer(config.optimizer), mesh)
    restored = checkpoints.restore(state)
    return state if restored is None else restored[0]


def make_reporter(
    model: ModelConfig,
    config: TrainConfig,
    compute: Compute,
    folder: pathlib.Path,
    start: int,
    title: str,
) -> Reporter:
    throughput = Throughput(
        model,
        round(sum(config.lengths) / len(config.lengths)),
        config.tokens / config.steps,
        frozen=config.optimizer.trains == 'lam',
    )
    return Reporter(
        folder,
        title,
        start=start,
        steps=config.steps,
        batch_size=config.batch_size,
        log_every=compute.log_every,
        skips=config.optimizer.on_bad == optim.SKIP,
        throughput=throughput,
    )


def check_mesh(model: ModelConfig, config: TrainConfig, compute: Compute, mesh: Mesh) -> None:
    """ValueError unless the batch splits over micro-batches and devices, and the heads and the
    sequence over the devices of their axes."""
    tensor, context = mesh.shape['tensor'], mesh.shape['context']
    if model.heads % tensor:
        raise ValueError(
            f'compute.mesh.tensor is {tensor}; it must divide model.heads, which is {model.heads}'
        )
    for length in config.lengths:
        if length % context:
            raise ValueError(
                f'compute.mesh.context is {context}; it must divide the training length, {length}'
            )
    accumulate = compute.micro_batches(config.batch_size, mesh)
    parts = accumulate * sharding.batch_parts(mesh)
    if config.batch_size % parts:
        raise ValueError(
            f'train.batch_size is {config.batch_size}; it must be a multiple of {parts} '
            f'(compute.accumulate {accumulate} x {sharding.batch_parts(mesh)} batch shards)'
        )


def describe_parameters(state: TrainState, folder: pathlib.Path) -> None:
    """parameters.txt: every variable with shape, size, mean and deviation at the start."""
    overview = parameter_overview.get_parameter_overview(state.variables, include_stats='global')
    if processes.is_first():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'parameters.txt').write_text(overview + '\n')
