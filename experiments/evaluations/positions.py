"""Loss and attention entropy by position."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, Self

from experiments.bench import Bench
from experiments.evaluations.base import Asked, Multiplier, Rows, measured_model, scaled
from experiments.evaluations.steps import kept_step
from experiments.evaluations.windows import WindowSpec, blocks, execution, said, windows
from experiments.programs import Evaluation, Program
from nope.evals import positions
from nope.model import ModelConfig
from nope.positions import Position
from nope.records import Records


@dataclasses.dataclass(frozen=True, kw_only=True)
class PositionsSpec(WindowSpec):
    """Loss and entropy by position.

    multiplier: None for the run's own lambda; a number or a grid's best for a uniform one.
    position: another position encoding than the run was trained with. step: None for the last.
    """

    multiplier: Multiplier = None
    position: Position | None = None
    step: int | None = None
    kind = 'positions'
    fields = (
        *('times', 'target', 'step_share', 'evaluation'),
        *('multiplier', 'multiplier_from', 'position'),
    )

    @classmethod
    def from_entry(cls, asked: Asked) -> Self:
        position = asked.position()
        length = asked.scope.length_of(asked.entry, asked.train_length)
        asked.check_reach(position, length)
        return cls(
            run=asked.run,
            windows=windows(length, asked.section('evaluation')),
            multiplier=asked.multiplier(),
            position=position,
            step=kept_step(asked),
        )

    @property
    def model(self) -> ModelConfig:
        return measured_model(self.run, self.multiplier, self.position)

    @property
    def measured_step(self) -> int | None:
        return self.step

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        del folder
        length = self.windows.length
        variables, chosen = scaled(bench, self, self.multiplier, length, self.step)
        read = blocks(bench, self.run, self.windows)
        found = positions.run(
            self.model,
            variables,
            read.tokens,
            of_document=read.of_document,
            progress=bench.bar('loss and entropy'),
            **execution(bench, self.windows),
        )
        return found, said(read) | chosen

    def programs(self, rows: Rows) -> Iterator[Program]:
        length = self.windows.length
        batch = rows(length, Evaluation.rules)
        yield Evaluation(self.model, True, length, batch, resampled=True)
