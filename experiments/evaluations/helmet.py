"""HELMET's recall group: keys and needles in files of given lengths, which are the user's."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar

from experiments.bench import Bench
from experiments.evaluations.base import Rows, TableRow
from experiments.evaluations.text_base import TEXT_FIELDS, FilesSpec, after_bos, answering
from experiments.programs import Program
from nope.evals import helmet
from nope.records import Records
from nope.variables import Variables


@dataclasses.dataclass(frozen=True, kw_only=True)
class HelmetSpec(FilesSpec):
    """HELMET's recall group (`nope.evals.helmet`, arXiv 2410.02694).

    lengths: tokens of a prompt and its answer. limit: samples of each file.
    """

    kind = 'helmet'
    fields = ('times', 'helmet', 'tokens', *TEXT_FIELDS)  # published recall has no turns
    title = 'HELMET'
    layout = 'json_kv/ and ruler/, as in the published archive'
    command = 'helmet:FOLDER'
    defaults: ClassVar = {'folder': '', 'limit': None, 'bos': None}

    @property
    def plan(self) -> helmet.HelmetPlan:
        return helmet.HelmetPlan(
            self.tokenizer,
            pathlib.Path(self.folder),
            self.lengths,
            bos=self.bos,
            limit=self.limit or None,
        )

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        return helmet.run(self.generator(bench, variables), self.plan, **how)

    def rows(self, found: Records) -> list[TableRow]:
        cut, samples = (found[name].sum(axis=1).tolist() for name in ('truncated', 'samples'))
        return self.task_rows(found) + [
            TableRow(self.kind, 'contexts cut', length, cut[k], f'of {samples[k]}', samples[k])
            for k, length in enumerate(found.coordinates['length'].tolist())
        ]

    def programs(self, rows: Rows) -> Iterator[Program]:
        budgets = sorted({task.budget for task in helmet.TASKS.values()})
        return answering(self, [(n - b, b) for n in self.lengths for b in budgets], rows)

    def measured_on(self, found: Records) -> tuple[str, str]:
        length, token = max(self.lengths), found.attributes['token']
        how = f'{int(found["samples"].sum()):,} samples, greedy{after_bos(found, "prompt")}'
        return f"HELMET's recall group, prompts of up to {length:,} {token}s", how
