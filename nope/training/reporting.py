"""Reports of a running training: metrics rows, progress bar, bad steps, throughput."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from nope.checkpoints import folders
from nope.model import ModelConfig, counts
from nope.runtime import hardware, processes, progress
from nope.training import optim
from nope.training.config import Compute, TrainConfig
from nope.training.metrics import MetricsWriter, json_number
from nope.training.step import Metrics
from nope.training.tracker import Tracker

BAD_STEPS = 'bad_steps.jsonl'
MOST_SKIPPED = 10  # in a row: more, and it is not the data
SKIPPED = 'skipped'  # of a checkpoint's `data`: bad steps in a row up to it, left out where 0


class TrainingDiverged(RuntimeError):
    """The loss or its gradient is no longer finite, or jumps."""


class Reporter:
    """Checks, shows and writes each step's metrics, one step late.

    While step n is fetched the devices compute step n + 1. `metrics.jsonl` has a row for every
    `log_every`-th step, for monitored and scored ones and for the last, wherever a run was stopped
    in between. All processes check, and the first one writes, to a `Tracker` too where asked for.
    skipped: bad steps in a row before the first. identity: of the run.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        title: str,
        model: ModelConfig,
        config: TrainConfig,
        compute: Compute,
        *,
        start: int,
        skipped: int,
        identity: Mapping[str, Any],
    ) -> None:
        optimizer = config.optimizer
        self._folder = folder
        self._steps, self._batch_size = config.steps, config.batch_size
        self._log_every = compute.log_every
        self._skips, self._skipped = optimizer.on_bad == optim.SKIP, skipped
        self._throughput = Throughput(
            model, config.lengths, config.batch_size, frozen=optimizer.freezes
        )
        first = processes.is_first()
        self._tracker: Tracker | None = None
        if first and compute.wandb is not None:
            how: dict[str, Any] = {'title': title, 'folder': folder, 'config': identity}
            self._tracker = Tracker(compute.wandb, goes_on=start > 0, **how)
        self._writer = MetricsWriter(folder, resume_step=start) if first else None
        self._bar = progress.bar(
            total=config.steps, initial=start, desc=title, unit='step', disable=not first
        )
        self._pending: tuple[int, Metrics, Metrics] | None = None
        self._scores: Mapping[str, float] = {}
        self._good = ''  # loss of the last good step, as messages have it
        self._kept = f'the checkpoint of step {start} is kept' if start else ''

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._bar.close()
        if self._writer is not None:
            self._writer.close()
        if self._tracker is not None:
            self._tracker.close(failed=error is not None)

    def add(self, step: int, metrics: Metrics, by_layer: Metrics | None = None) -> None:
        """Takes the metrics of the step just dispatched and reports those of the one before.

        by_layer: arrays [L], written as NAME/0, NAME/1 and so on; such a step always has a row.
        """
        self.flush()
        self._pending = (step, metrics, by_layer or {})
        self._scores = {}

    def check(self) -> None:
        """Reports the pending step where it is one that ends the run: TrainingDiverged, before what
        it left is used."""
        if self._pending is None or not float(self._pending[1]['bad']):
            return
        if not self._skips or self._skipped + 1 >= MOST_SKIPPED:
            self.flush()

    def scored(self, scores: Mapping[str, float]) -> None:
        """Takes scores of the state after the step that was added last, which then has a row."""
        self._scores = scores

    def flush(self) -> None:
        """Reports the pending step; TrainingDiverged for a bad one where none are skipped, or
        where too many were."""
        if self._pending is None:
            return
        step, metrics, by_layer = self._pending
        self._pending = None
        values = {name: float(value) for name, value in metrics.items()}
        bad = values.pop('bad') > 0
        self._bar.set_postfix(loss=f'{values["loss"]:.4f}', refresh=False)
        self._bar.update(step - self._bar.n)
        if step % self._log_every == 0 or step == self._steps or by_layer or self._scores:
            rates = self._throughput.since_last(step)
            layers = {
                f'{name}/{layer}': float(value)
                for name, array in by_layer.items()
                for layer, value in enumerate(np.asarray(array))
            }
            row = {**values, **rates, **layers, **self._scores}
            if self._writer is not None:
                self._writer.write(step, row)
            if self._tracker is not None:
                self._tracker.write(step, row)
        self._skipped = self._skipped + 1 if bad else 0
        if bad:
            self._note(step, values)
        else:
            loss, norm = values['loss'], values['grad_norm']
            self._good = f' (loss {loss:.4g}, gradient norm {norm:.4g} at step {step})'

    @property
    def entry(self) -> dict[str, Any]:
        """Entry of the bad steps in a row, up to the one flushed last, in a checkpoint's `data`."""
        return {SKIPPED: self._skipped} if self._skipped else {}

    def saved(self, step: int) -> None:
        """Notes that the step flushed last is in a checkpoint, for messages of later failures."""
        self._kept = f'the checkpoint of step {step}{self._good} is kept'

    def _note(self, step: int, values: Mapping[str, float]) -> None:
        goes_on = self._skips and self._skipped < MOST_SKIPPED
        first = (step - 1) * self._batch_size
        last = first + self._batch_size - 1
        row = {
            'step': step,
            'examples': [first, last],
            'loss': json_number(values['loss']),
            'grad_norm': json_number(values['grad_norm']),
            'action': 'skipped' if goes_on else 'stopped',
        }
        if processes.is_first():
            with (self._folder / BAD_STEPS).open('a') as file:
                file.write(json.dumps(row) + '\n')
        if not goes_on:
            which = f'{step}, the last of {self._skipped} bad ones' if self._skips else f'{step}'
            raise TrainingDiverged(
                f'loss {values["loss"]:g} and gradient norm {values["grad_norm"]:g} at step '
                f'{which}, of examples {first} to {last}; {self._remains()}. A lower learning_rate '
                "or a longer warm-up is the usual remedy, or on_bad = 'skip'"
            )

    def _remains(self) -> str:
        if not self._kept:
            return 'no checkpoint had been saved, and the same command begins anew'
        return f'{self._kept} in {folders.of_run(self._folder)}'


class Throughput:
    """Tokens per second and MFU. The first interval holds compilation and is not rated.

    MFU: model FLOPs (`nope.model.counts`: matrix products, what of attention is seen, nothing
    recomputed) over the devices' dense peak (`nope.runtime.hardware`).
    """

    def __init__(
        self, model: ModelConfig, lengths: Sequence[int], batch_size: int, *, frozen: bool
    ) -> None:
        """lengths: tokens of the sequences of successive steps, over and over."""
        self._tokens = [batch_size * length for length in lengths]
        self._flops = [
            tokens * counts.training_flops(model, length, frozen=frozen)
            for tokens, length in zip(self._tokens, lengths, strict=True)
        ]
        self._last: tuple[int, float] | None = None

    def since_last(self, step: int) -> dict[str, float]:
        """Rates between the last call's step and this one; {} at the first call."""
        last, self._last = self._last, (step, time.perf_counter())
        if last is None:
            hardware.peak_flops()  # measured here, outside the rated intervals, where unknown
            self._last = (step, time.perf_counter())
            return {}
        seconds = self._last[1] - last[1]
        taken = [done % len(self._tokens) for done in range(last[0], step)]
        peak = hardware.peak_flops() * jax.device_count()
        return {
            'tokens_per_second': sum(self._tokens[i] for i in taken) / seconds,
            'mfu': sum(self._flops[i] for i in taken) / (seconds * peak),
        }


def skipped_of(data: Mapping[str, Any]) -> int:
    """Bad steps in a row up to a checkpoint, by its `data`."""
    return data.get(SKIPPED, 0)
