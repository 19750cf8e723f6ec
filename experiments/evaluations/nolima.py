"""NoLiMa: needles that share no words with the questions about them, in books of the user's."""

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
    before_prompts,
    count_of,
    ends_of,
    folder_of,
    of_text,
)
from experiments.programs import Continuing, Program
from nope.data import digest
from nope.data.sources import folders
from nope.evals import answers, batching, nolima
from nope.records import Records
from nope.variables import Variables


@dataclasses.dataclass(frozen=True, kw_only=True)
class NolimaSpec(LengthsOfTextSpec):
    """NoLiMa (`nope.evals.nolima`, arXiv 2502.05167).

    lengths: tokens of the book around a needle. folder: of files. fingerprint: of their content.
    limit: pairs of a needle and a question, 0 for all.
    """

    folder: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    limit: int
    kind = 'nolima'
    fields = ('times', 'nolima', *ASKING_FIELDS)
    title = 'NoLiMa'
    command = 'nolima:FOLDER'
    defaults: ClassVar = {'folder': '', 'limit': None, 'bos': None}

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = cls.own_section(asked)
        lengths, common = asked.lengths(), of_text(asked, section)
        beyond = before_prompts(asked, common['bos'])
        asked.check_reach(common['position'], max(lengths) + beyond)
        folder = folder_of(section, 'NoLiMa', 'needlesets/ and haystack/, as published')
        limit = count_of(section, 'limit', 0)
        spec = cls(lengths=lengths, folder=str(folder), fingerprint='', limit=limit, **common)
        with section.reading('folder'):
            content = folders.identity('nolima', folder, spec.plan.names)
        return dataclasses.replace(spec, fingerprint=digest.of_json([content, *ends_of(asked.run)]))

    @property
    def plan(self) -> nolima.NolimaPlan:
        folder, limit = pathlib.Path(self.folder), self.limit or None
        return nolima.NolimaPlan(self.tokenizer, folder, self.lengths, limit)

    def check(self, bench: Bench) -> None:
        self.plan.check()

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        generator = self.generator(bench, variables)
        return nolima.run(generator, self.plan, bos=self.bos, chat=self.chat, **how)

    def rows(self, found: Records) -> list[TableRow]:
        lengths, facts = found.coordinates['length'].tolist(), found.attributes
        samples = found['depths'].shape[1] * len(found.coordinates['pair']) * len(facts['books'])
        told = [
            ('right answers', length, value, '%')
            for length, value in zip(lengths, found['average'].tolist(), strict=True)
        ]
        if facts['base_score'] is not None:
            told += [
                ('base score', min(lengths), facts['base_score'], '%'),
                ('effective length', max(lengths), facts['effective_length'], 'tokens'),
            ]
        return [TableRow(self.kind, *row, samples) for row in told]

    def programs(self, rows: Rows) -> Iterator[Program]:
        options = answers.options(nolima.BUDGET, self.tokenizer)
        texts = [p.template.format(haystack=p.needle, question=p.question) for p in self.plan.pairs]
        around = max(len(self.tokenizer.encode(text)) for text in texts)
        for length in self.lengths:
            prompt = batching.padded_length(length + around)
            count = rows(prompt + nolima.BUDGET, Continuing.rules)
            yield Continuing(self.model, options, prompt, count)

    def measured_on(self, found: Records) -> tuple[str, str]:
        books, token = found.attributes['books'], found.attributes['token']
        what = f'NoLiMa, {len(books)} books of up to {max(self.lengths):,} {token}s'
        pairs = len(found.coordinates['pair'])
        return what, f'{pairs:,} needles with questions, greedy{after_bos(found, "prompt")}'
