"""The training loop, for pre-training and for the search of lambda alike."""

from __future__ import annotations

import dataclasses
import logging
import math
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from clu import parameter_overview
from jax.sharding import Mesh

from nope import hardware, optim, progress, sharding
from nope.checkpoint import Checkpoints
from nope.metrics import MetricsWriter
from nope.model import ModelConfig
from nope.state import TrainState, Variables, fresh_state
from nope.step import Metrics, make_step

log = logging.getLogger(__name__)


class TrainingDiverged(RuntimeError):
    """The loss or its gradient is no longer finite."""


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

    accumulate: micro-batches per step of pre-training. checkpoint_every, log_every: in steps.
    keep: newest checkpoints kept. threads: of the data loader.
    """

    mesh: sharding.MeshConfig = sharding.MeshConfig()
    accumulate: int = 1
    checkpoint_every: int = 500
    log_every: int = 10
    keep: int = 2
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ('accumulate', 'checkpoint_every', 'log_every', 'keep', 'threads'):
            if getattr(self, name) < 1:
                raise ValueError(f'compute.{name} is {getattr(self, name)}; it must be at least 1')


Batches = Callable[[int], Iterator[np.ndarray]]  # batches consumed -> this process's [B', T + 1]


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
) -> Variables:
    """Trains from `initial()`, or from the newest checkpoint in `folder`, to the last step.

    Leaves in `folder`: checkpoints/, metrics.jsonl, tensorboard/, parameters.txt. A run that
    was stopped and started again is bitwise the uninterrupted one on the same devices.

    Raises TrainingDiverged (the last good checkpoint stays), Interrupted (state saved), or
    CheckpointError (the folder holds another run).
    """
    check_divisible(config, compute, mesh)
    optimizer = optim.make_optimizer(config.optimizer)
    rows = sharding.micro_batches(mesh)

    with (
        sharding.use(mesh),
        Checkpoints(
            folder / 'checkpoints', identity, keep=compute.keep, permanent=config.keep_steps
        ) as checkpoints,
    ):
        state = fresh_state(initial(), optimizer, mesh)
        placed = jax.tree.map(lambda leaf: leaf.sharding, state)
        step_fn = jax.jit(
            make_step(model, config.optimizer), donate_argnums=0, out_shardings=(placed, None)
        )
        restored = checkpoints.restore(state)
        if restored is not None:
            state, _ = restored
            log.info('%s: going on from step %d', title, int(state.step))
        start = int(state.step)
        describe_parameters(state, folder)
        saved_at = {config.steps, *config.keep_steps}
        stream = batches(start)
        with Reporter(model, config, compute, folder, start, title) as reporter:
            for step in range(start, config.steps):
                length = config.lengths[step % len(config.lengths)]
                local = next(stream)[:, : length + 1]
                blocks = sharding.place(rows, local.reshape(compute.accumulate, -1, length + 1))
                state, metrics = step_fn(state, blocks)
                reporter.add(step + 1, metrics)

                done, stop = step + 1, should_stop()
                if stop or done in saved_at or done % compute.checkpoint_every == 0:
                    reporter.flush()  # nothing is saved that is not finite
                    position = {'batches': done, 'examples': done * config.batch_size}
                    checkpoints.save(state, position)
                if stop and done < config.steps:
                    raise Interrupted(f'{title}: stopped at step {done}, saved in {folder}')
    return state.variables


def check_divisible(config: TrainConfig, compute: Compute, mesh: Mesh) -> None:
    """ValueError unless the batch splits over micro-batches and devices."""
    parts = compute.accumulate * sharding.batch_parts(mesh)
    if config.batch_size % parts:
        raise ValueError(
            f'train.batch_size is {config.batch_size}; it must be a multiple of {parts} '
            f'(compute.accumulate {compute.accumulate} x {sharding.batch_parts(mesh)} batch shards)'
        )


def describe_parameters(state: TrainState, folder: pathlib.Path) -> None:
    """parameters.txt: every variable with shape, size, mean and deviation at the start."""
    folder.mkdir(parents=True, exist_ok=True)
    overview = parameter_overview.get_parameter_overview(state.variables)
    (folder / 'parameters.txt').write_text(overview + '\n')


class Reporter:
    """Fetches each step's metrics one step late, checks, shows and writes them.

    While step n is fetched the devices are at work on n + 1. Rows of `metrics.jsonl` are those
    of every `log_every`-th step and the last, wherever a run was stopped in between.
    """

    def __init__(
        self,
        model: ModelConfig,
        config: TrainConfig,
        compute: Compute,
        folder: pathlib.Path,
        start: int,
        title: str,
    ) -> None:
        self._log_every = compute.log_every
        self._steps = config.steps
        self._folder = folder
        self._throughput = Throughput(model, config)
        self._writer = MetricsWriter(folder, resume_step=start)
        self._bar = progress.bar(total=config.steps, initial=start, desc=title, unit='step')
        self._pending: tuple[int, Metrics] | None = None

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
        self._writer.close()

    def add(self, step: int, metrics: Metrics) -> None:
        """Takes the metrics of the step just dispatched and reports those of the one before."""
        self.flush()
        self._pending = (step, metrics)

    def flush(self) -> None:
        """Reports what is pending; TrainingDiverged where it is not finite."""
        if self._pending is None:
            return
        step, metrics = self._pending
        self._pending = None
        values = {name: float(value) for name, value in metrics.items()}
        self._bar.set_postfix(loss=f'{values["loss"]:.4f}', refresh=False)
        self._bar.update(step - self._bar.n)
        if step % self._log_every == 0 or step == self._steps:
            self._writer.write(step, values | self._throughput.since_last(step))
        if not (math.isfinite(values['loss']) and math.isfinite(values['grad_norm'])):
            raise TrainingDiverged(
                f'loss {values["loss"]} and gradient norm {values["grad_norm"]} at step {step}; '
                f'the last good checkpoint is kept in {self._folder / "checkpoints"}. A lower '
                'learning_rate or a longer warm-up is the usual remedy'
            )


class Throughput:
    """Tokens per second and MFU. The first interval holds compilation and is not rated."""

    def __init__(self, model: ModelConfig, config: TrainConfig) -> None:
        mean_length = round(sum(config.lengths) / len(config.lengths))
        self._tokens_per_step = config.tokens / config.steps
        # Frozen weights need no gradients of their own: a third less work.
        share = 1.0 if config.optimizer.trains == 'params' else 2 / 3
        self._flops_per_token = share * model.training_flops_per_token(mean_length)
        self._last: tuple[int, float] | None = None

    def since_last(self, step: int) -> dict[str, float]:
        """Rates between the last call's step and this one; {} at the first call."""
        last, self._last = self._last, (step, time.perf_counter())
        if last is None:
            hardware.peak_flops()  # measured here, outside the rated intervals, where unknown
            self._last = (step, time.perf_counter())
            return {}
        rate = (step - last[0]) * self._tokens_per_step / (self._last[1] - last[1])
        peak = hardware.peak_flops() * jax.device_count()
        return {'tokens_per_second': rate, 'mfu': rate * self._flops_per_token / peak}
