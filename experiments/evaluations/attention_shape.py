"""Shape of attention by position."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Self

from experiments.bench import Bench
from experiments.evaluations.base import Rows, measured_model, scaled
from experiments.evaluations.entry import EvalEntry, Multiplier
from experiments.evaluations.windows import WindowSpec, windows
from experiments.programs import Evaluation, Program
from experiments.runs import HeadScores
from nope.data import EvalBlocks
from nope.evals import attention_shape
from nope.model import ModelConfig
from nope.records import Records


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShapeSpec(WindowSpec, HeadScores):
    """Shape of attention: entropy, weight on the first and the latest tokens, size of the output.

    multiplier: None for the run's own lambda; a number or a grid's best for a uniform one. span:
    the latest tokens, by default the training length.
    """

    multiplier: Multiplier = None
    span: int
    kind = 'attention_shape'
    title = 'shape of attention'
    fields = ('times', 'target', 'evaluation', 'multiplier', 'multiplier_from', 'span')

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        length = asked.scope.length_of(asked.entry, asked.train_length)
        asked.check_reach(None, length)
        weights = asked.run.model.weights
        if weights != 'softmax':
            raise asked.entry.error('run', f'its weights are {weights!r}; accepted: softmax')
        return cls(
            run=asked.run,
            windows=windows(length, asked.section('evaluation')),
            multiplier=asked.multiplier(),
            span=asked.times('span', 1.0),
        )

    @property
    def words(self) -> str:
        return f'their weight on the latest {self.span:,} tokens'

    @property
    def model(self) -> ModelConfig:
        return measured_model(self.run, self.multiplier, None)

    def found(self, bench: Bench, read: EvalBlocks, **how: Any) -> tuple[Records, dict[str, Any]]:
        variables, chosen = scaled(bench, self, self.multiplier, self.windows.length)
        found = attention_shape.run(self.model, variables, read.tokens, span=self.span, **how)
        return found, chosen

    def programs(self, rows: Rows) -> Iterator[Program]:
        length = self.windows.length
        yield Evaluation(self.model, True, length, rows(length, Evaluation.rules), self.span)
