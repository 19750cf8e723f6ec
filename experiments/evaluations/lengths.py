"""Loss against window length, on windows that end at the same tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from experiments.bench import Bench
from experiments.evaluations.base import Rows, measured_model
from experiments.evaluations.entry import EvalEntry
from experiments.evaluations.multiplier_grid import GridSpec
from experiments.evaluations.windows import WindowSpec, windows
from experiments.programs import Evaluation, Program
from experiments.runs import text_of
from nope.data import EvalBlocks
from nope.evals import lengths
from nope.evals.multiplier_grid import Grid
from nope.model import ModelConfig
from nope.positions import Position
from nope.records import Records


@dataclasses.dataclass(frozen=True, kw_only=True)
class LengthsSpec(WindowSpec):
    """Loss against window length.

    grids: of the multiplier for every length, or none for the run's own lambda. position: another
    position encoding than the run was trained with.
    """

    lengths: tuple[int, ...]
    grids: tuple[GridSpec, ...] = ()
    position: Position | None = None
    tail: int | None = None
    kind = 'lengths'
    title = 'loss by length'
    fields = ('times', 'evaluation', 'grid', 'position', 'tail')

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        measured = asked.lengths()
        longest, position = max(measured), asked.position()
        asked.check_reach(position, longest)
        grids: tuple[GridSpec, ...] = ()
        if 'grid' in asked.entry:
            asked.check_no_law('grid')
            if position is not None:
                rule = 'its multipliers would be chosen under the encoding that the run was trained'
                raise asked.entry.error('grid', f'not with position: {rule} with')
            section = asked.section('grid')
            grid = section.make(Grid)
            grids = tuple(
                GridSpec(run=asked.run, windows=windows(length, section, longest), grid=grid)
                for length in measured
            )
        return cls(
            run=asked.run,
            windows=windows(longest, asked.section('evaluation')),
            lengths=measured,
            grids=grids,
            position=position,
            tail=asked.times('tail', 0.5) if 'tail' in asked.entry else None,
        )

    def inside(self, targets: np.ndarray) -> np.ndarray:
        return targets[:, -(self.run.train_length or 0) :]  # windows end at the same tokens

    @property
    def model(self) -> ModelConfig:
        return measured_model(self.run, self.grids or None, self.position)

    @property
    def reads(self) -> Mapping[int, int]:
        return dict.fromkeys(self.lengths, self.windows.count)

    @property
    def reach(self) -> str:
        return 'up to '

    def found(self, bench: Bench, read: EvalBlocks, **how: Any) -> tuple[Records, dict[str, Any]]:
        chosen = [bench.best_multiplier(grid) for grid in self.grids]
        multipliers = chosen or [None] * len(self.lengths)
        found = lengths.run(
            self.model,
            [bench.scaled(self.run, None, multiplier) for multiplier in multipliers],
            read.tokens,
            self.lengths,
            of_document=read.of_document,
            tail=self.tail or max(self.run.train_length // 2, 1),
            prefix=text_of(self.run).prefix,
            **how,
        )
        return found, {} if self.tail is None else {'tail': self.tail}

    def programs(self, rows: Rows) -> Iterator[Program]:
        for length in self.lengths:
            batch = rows(length, Evaluation.rules)
            yield Evaluation(self.model, False, length, batch, resampled=True)
