"""Attention of the query that must find a passkey, beside the share of keys repeated."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from experiments.bench import Bench
from experiments.evaluations.base import Rows
from experiments.evaluations.entry import EvalEntry
from experiments.evaluations.passkey import PasskeySpec
from experiments.programs import AttentionRows, Program, ValueNorms
from nope.evals import key_attention
from nope.records import Records
from nope.variables import Variables

SPAN = 0.25  # of L


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeyAttentionSpec(PasskeySpec):
    """Attention weight of the query on the key (`nope.evals.key_attention`), on the prompts of a
    passkey evaluation and beside its shares.

    span: tokens that count as the latest, by default L / 4.
    """

    span: int
    kind = 'key_attention'
    fields = (*PasskeySpec.fields, 'span')
    section = 'passkey'
    command = ''
    defaults: ClassVar[Mapping[str, Any] | None] = None
    title = 'attention on the key'

    @classmethod
    def from_entry(cls, asked: EvalEntry, **more: Any) -> Self:
        weights = asked.run.model.weights
        if weights != 'softmax':
            raise asked.entry.error('run', f'its weights are {weights!r}; accepted: softmax')
        return super().from_entry(asked, span=asked.times('span', SPAN), **more)

    def check(self, bench: Bench) -> None:
        key_attention.asked(self._plan(bench))

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        answered = super().found(bench, variables, **how)
        looked = key_attention.run(
            self.model,
            variables,
            key_attention.asked(self._plan(bench)),
            span=self.span,
            mesh=bench.mesh,
            batch_tokens=bench.batch_tokens,
            progress=how['progress'],
        )
        return Records(
            {**answered.attributes, **looked.attributes},
            {**answered.measures, **looked.measures},
            answered.coordinates,
        )

    def programs(self, rows: Rows) -> Iterator[Program]:
        yield from super().programs(rows)
        for length in self.reads:
            yield AttentionRows(self.model, 1, length, rows(length, AttentionRows.rules))
            yield ValueNorms(self.model, length, rows(length, ValueNorms.rules))
