"""HELMET's recall group: keys and needles in files of given lengths, which are the user's."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from experiments.bench import Bench
from experiments.evaluations.base import (
    ASKING_FIELDS,
    EvalEntry,
    LengthsOfTextSpec,
    Rows,
    TableRow,
    after_bos,
    count_of,
    ends_of,
    folder_of,
    of_text,
)
from experiments.programs import Continuing, Program
from nope.data import digest
from nope.data.sources import folders
from nope.evals import answers, batching, helmet
from nope.records import Records
from nope.variables import Variables


@dataclasses.dataclass(frozen=True, kw_only=True)
class HelmetSpec(LengthsOfTextSpec):
    """HELMET's recall group (`nope.evals.helmet`, arXiv 2410.02694).

    lengths: tokens of a prompt and its answer. folder: of its files. fingerprint: of their content.
    limit: samples of each file at most, 0 for all.
    """

    folder: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    limit: int
    kind = 'helmet'
    fields = ('times', 'helmet', *ASKING_FIELDS)
    command = 'helmet:FOLDER'
    defaults: ClassVar = {'folder': '', 'limit': None, 'bos': None}
    title = 'HELMET'

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = cls.own_section(asked)
        lengths, common = asked.lengths(), of_text(asked, section)
        asked.check_reach(common['position'], max(lengths))
        folder = folder_of(section, 'HELMET', 'json_kv/ and ruler/, as in the published archive')
        spec = cls(
            lengths=lengths,
            folder=str(folder),
            fingerprint='',
            limit=count_of(section, 'limit', 0),
            **common,
        )
        with section.reading('folder'):
            content = folders.identity('helmet', folder, spec.plan.names)
        return dataclasses.replace(spec, fingerprint=digest.of_json([content, *ends_of(asked.run)]))

    @property
    def plan(self) -> helmet.HelmetPlan:
        return helmet.HelmetPlan(
            self.tokenizer,
            pathlib.Path(self.folder),
            self.lengths,
            bos=self.bos,
            limit=self.limit or None,
            chat=self.chat,
        )

    def check(self, bench: Bench) -> None:
        self.plan.check()

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        return helmet.run(self.generator(bench, variables), self.plan, **how)

    def rows(self, found: Records) -> list[TableRow]:
        cut, samples = (found[name].sum(axis=1).tolist() for name in ('truncated', 'samples'))
        return self.task_rows(found) + [
            TableRow(self.kind, 'contexts cut', length, cut[k], f'of {samples[k]}', samples[k])
            for k, length in enumerate(found.coordinates['length'].tolist())
        ]

    def programs(self, rows: Rows) -> Iterator[Program]:
        for length in self.lengths:
            for budget in sorted({task.budget for task in helmet.TASKS.values()}):
                options = answers.options(budget, self.tokenizer)
                prompt = batching.padded_length(length - budget)
                count = rows(prompt + budget, Continuing.rules)
                yield Continuing(self.model, options, prompt, count)

    def measured_on(self, found: Records) -> tuple[str, str]:
        length, token = max(self.lengths), found.attributes['token']
        how = f'{int(found["samples"].sum()):,} samples, greedy{after_bos(found, "prompt")}'
        return f"HELMET's recall group, prompts of up to {length:,} {token}s", how
