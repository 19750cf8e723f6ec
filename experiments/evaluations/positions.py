"""Loss and attention entropy by position."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from experiments.bench import Bench
from experiments.evaluations.base import Rows, TableRow, measured_model, scaled
from experiments.evaluations.entry import EvalEntry, Multiplier
from experiments.evaluations.text_base import TEXT_FIELDS
from experiments.evaluations.windows import WindowSpec, windows, windows_of_files
from experiments.programs import Evaluation, Program
from nope.data import EvalBlocks
from nope.evals import positions
from nope.model import ModelConfig
from nope.positions import Position
from nope.records import Records


@dataclasses.dataclass(frozen=True, kw_only=True)
class PositionsSpec(WindowSpec):
    """Loss and entropy by position.

    multiplier: None for the run's own lambda; a number or a grid's best for a uniform one.
    position: another position encoding than the run was trained with. step: None for the last.
    ends: lengths that rows of the table end at.
    """

    multiplier: Multiplier = None
    position: Position | None = None
    step: int | None = None
    ends: tuple[int, ...] = dataclasses.field(
        default=(), compare=False, metadata={'identity': False}
    )
    kind = 'positions'
    title = 'loss and entropy'
    fields = ('times', 'target', 'tokens', 'step_share', 'corpus', 'evaluation', *TEXT_FIELDS)
    section = 'evaluation'
    command = 'loss:PATH'
    defaults: ClassVar = {'windows': 16}

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        position = asked.position()
        length, section = asked.length(), cls.own_section(asked)
        asked.check_reach(position, length)
        files = 'corpus' in asked.entry
        return cls(
            run=asked.run,
            windows=windows_of_files(length, asked, section) if files else windows(length, section),
            multiplier=asked.multiplier(),
            position=position,
            step=asked.kept_step(),
            ends=asked.lengths() if 'tokens' in asked.entry else (length,),
        )

    @property
    def model(self) -> ModelConfig:
        return measured_model(self.run, self.multiplier, self.position)

    @property
    def measured_step(self) -> int | None:
        return self.step

    def found(self, bench: Bench, read: EvalBlocks, **how: Any) -> tuple[Records, dict[str, Any]]:
        variables, chosen = scaled(bench, self, self.multiplier, self.windows.length, self.step)
        documents = None if self.windows.texts else read.of_document
        found = positions.run(self.model, variables, read.tokens, of_document=documents, **how)
        return found, chosen

    def programs(self, rows: Rows) -> Iterator[Program]:
        length = self.windows.length
        batch, resampled = rows(length, Evaluation.rules), not self.windows.texts
        yield Evaluation(self.model, True, length, batch, resampled=resampled)

    def rows(self, found: Records) -> list[TableRow]:
        """Means over the positions behind the length before, up to each."""
        loss, entropy = found['loss'], found['entropy'].mean(axis=(0, 1)) / np.log(2)
        windows, first = found.attributes['windows'], self.run.train_length or min(self.ends)
        ends = sorted({*self.ends, min(first, len(loss))})
        return [
            TableRow(
                'loss',
                f'mean {what}, positions {low + 1:,} to {high:,}',
                high,
                float(values[low:high].mean()),
                unit,
                windows,
                windows * (high - low),
            )
            for what, values, unit in (('loss', loss, 'nats'), ('entropy', entropy, 'bits'))
            for low, high in zip([0, *ends], ends, strict=False)
        ]
