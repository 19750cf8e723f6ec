"""NoLiMa: needles that share no words with the questions about them, in books of the user's."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar

from experiments.bench import Bench
from experiments.evaluations.base import Rows, TableRow
from experiments.evaluations.text_base import ASKING_FIELDS, FilesSpec, after_bos, answering
from experiments.programs import Program
from nope.evals import nolima
from nope.records import Records
from nope.variables import Variables


@dataclasses.dataclass(frozen=True, kw_only=True)
class NolimaSpec(FilesSpec):
    """NoLiMa (`nope.evals.nolima`, arXiv 2502.05167).

    lengths: tokens of the book around a needle. limit: pairs of a needle and a question.
    """

    kind = 'nolima'
    fields = ('times', 'nolima', *ASKING_FIELDS)
    title = 'NoLiMa'
    layout = 'needlesets/ and haystack/, as published'
    around = True
    command = 'nolima:FOLDER'
    defaults: ClassVar = {'folder': '', 'limit': None, 'bos': None}

    @property
    def plan(self) -> nolima.NolimaPlan:
        folder, limit = pathlib.Path(self.folder), self.limit or None
        return nolima.NolimaPlan(self.tokenizer, folder, self.lengths, limit)

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

    @property
    def beside(self) -> int:
        texts = [p.template.format(haystack=p.needle, question=p.question) for p in self.plan.pairs]
        longest = max(len(self.tokenizer.encode(text)) for text in texts)
        return longest + self._system + nolima.BUDGET

    @property
    def _system(self) -> int:
        """Tokens of a chat's first turn."""
        if self.chat is None:
            return 0
        with_it, without = (self.chat.overhead(self.tokenizer, s) for s in (nolima.SYSTEM, ''))
        return with_it - without

    def programs(self, rows: Rows) -> Iterator[Program]:
        around = self.beside - nolima.BUDGET
        return answering(self, [(n + around, nolima.BUDGET) for n in self.lengths], rows)

    def measured_on(self, found: Records) -> tuple[str, str]:
        books, token = found.attributes['books'], found.attributes['token']
        what = f'NoLiMa, {len(books)} books of up to {max(self.lengths):,} {token}s'
        pairs = len(found.coordinates['pair'])
        return what, f'{pairs:,} needles with questions, greedy{after_bos(found, "prompt")}'
