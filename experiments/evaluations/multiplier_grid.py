"""Uniform multipliers on a grid: loss by position under each, and the best."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Self

from experiments.bench import Bench
from experiments.evaluations.base import Rows, uniform_form
from experiments.evaluations.entry import EvalEntry
from experiments.evaluations.windows import WindowSpec, windows
from experiments.programs import Evaluation, Program
from experiments.runs import MultiplierChoice
from nope.data import EvalBlocks
from nope.evals import multiplier_grid
from nope.evals.multiplier_grid import Grid
from nope.model import ModelConfig
from nope.records import Records


@dataclasses.dataclass(frozen=True, kw_only=True)
class GridSpec(WindowSpec, MultiplierChoice):
    """Uniform multipliers on a grid (`nope.evals.multiplier_grid`). step: None for the last."""

    grid: Grid
    step: int | None = None
    kind = 'multiplier_grid'
    title = 'multiplier grid'
    fields = ('times', 'target', 'step_share', 'grid')

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = asked.section('grid')
        length = asked.scope.length_of(asked.entry, asked.train_length)
        asked.check_reach(None, length)
        asked.check_no_law('kind')
        return cls(
            run=asked.run,
            windows=windows(length, section),
            grid=section.make(Grid),
            step=asked.kept_step(),
        )

    @property
    def model(self) -> ModelConfig:
        return uniform_form(self.run.model)

    @property
    def reads(self) -> Mapping[int, int]:
        return {self.windows.length: self.windows.count * len(self.grid.multipliers())}

    @property
    def highest(self) -> float:
        return self.grid.high

    @property
    def measured_step(self) -> int | None:
        return self.step

    def found(self, bench: Bench, read: EvalBlocks, **how: Any) -> tuple[Records, dict[str, Any]]:
        variables, length = bench.variables(self.run, self.step), self.run.train_length
        return multiplier_grid.run(
            self.model, variables, read.tokens, self.grid, train_length=length, **how
        ), {}

    def programs(self, rows: Rows) -> Iterator[Program]:
        length = self.windows.length
        yield Evaluation(self.model, False, length, rows(length, Evaluation.rules))
