"""Perplexity in sliding windows over the documents of a corpus."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from experiments.bench import Bench
from experiments.evaluations.base import Rows, TableRow
from experiments.evaluations.entry import EvalEntry, count_of
from experiments.evaluations.text_base import TEXT_FIELDS, LengthsOfTextSpec, after_bos, of_text
from experiments.evaluations.texts import Corpus, corpus_of, open_corpus
from experiments.programs import Program, SlidingWindows
from nope.data.documents import Documents
from nope.evals import sliding
from nope.records import Records
from nope.runtime.amounts import amount
from nope.variables import Variables

MOST_STRIDE = 128  # of lengths in tokens, where nothing says the stride


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerplexitySpec(LengthsOfTextSpec):
    """Perplexity in sliding windows (`nope.evals.sliding`).

    corpus: one source, read with the run's tokenizer. lengths: of the windows. stride: tokens
    scored in each. budget: tokens scored at each length. per_document: windows of a document, None
    for all. published: BOS stands before each document and not in every window, and each length
    scores tokens of its own.
    """

    corpus: Corpus
    split: str
    stride: int
    budget: int
    per_document: int | None = None
    published: bool = True
    kind = 'perplexity'
    fields = ('times', 'tokens', 'corpus', 'perplexity', *TEXT_FIELDS)
    command = 'perplexity:PATH'
    defaults: ClassVar = {
        **{'stride': None, 'budget': 32768, 'per_document': None},
        **{'bos': None, 'published': False},
    }
    title = 'perplexity'

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = cls.own_section(asked)
        common, tokens = of_text(asked, section), 'tokens' in asked.entry
        some = tokens or 'times' in asked.entry
        measured = asked.lengths() if some else (asked.train_length,)
        asked.check_reach(common['position'], max(measured))
        eighth = max((max(measured) if tokens else asked.train_length) // 8, 1)
        stride = count_of(section, 'stride', min(eighth, MOST_STRIDE) if tokens else eighth)
        if stride >= min(measured):
            rule = f'windows of {min(measured)} tokens are to be longer than the stride, {stride}'
            if section.optional('stride') is not None:
                raise section.error('stride', rule)
            of = 'the longest' if tokens else 'L'
            raise asked.entry.error('tokens' if tokens else 'times', f'{rule}, an eighth of {of}')
        corpus, split = corpus_of(asked)
        return cls(
            corpus=corpus,
            split=split,
            lengths=measured,
            stride=stride,
            budget=section.at_least('budget', stride),
            per_document=count_of(section, 'per_document', None),
            published=section['published'],
            **common,
        )

    @property
    def read_split(self) -> str:
        return self.split

    @property
    def reads(self) -> Mapping[int, int]:
        return dict.fromkeys(self.lengths, self.budget // self.stride)

    def check(self, bench: Bench) -> None:
        documents = self._documents(bench)
        sliding.plans(
            documents.lengths,
            self.lengths,
            stride=self.stride,
            budget=self.budget,
            per_document=self.per_document,
            aligned=not self.published,
        )

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        return sliding.run(
            self.model,
            variables,
            self._documents(bench),
            self.lengths,
            stride=self.stride,
            budget=self.budget,
            per_document=self.per_document,
            aligned=not self.published,
            mesh=bench.mesh,
            batch_tokens=bench.batch_tokens,
            **how,
        )

    def programs(self, rows: Rows) -> Iterator[Program]:
        for length in self.lengths:
            batch = rows(length, SlidingWindows.rules)
            yield SlidingWindows(self.model, self.stride, length, batch)

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts, token = found.attributes, found.attributes['token']
        start = after_bos(found, 'document' if self.published else 'window')
        read = f'{int(found["documents"].max()):,} documents'
        return str(facts['corpus']), (
            f'windows of up to {self.extent:,} {token}s, {facts["stride"]:,} apart, '
            f'{amount(facts["scored"])} {token}s of {read} scored for each length{start}'
        )

    def rows(self, found: Records) -> list[TableRow]:
        lengths, what = found.coordinates['length'], f'last {self.stride:,} tokens of each window'
        measured = zip(lengths.tolist(), found['perplexity'], found['windows'], strict=True)
        return [
            TableRow(self.kind, what, n, float(value), 'perplexity', int(w), int(w) * self.stride)
            for n, value, w in measured
        ]

    def _documents(self, bench: Bench) -> Documents:
        how = {'bos': self.bos, 'once': self.published}
        return open_corpus(self.corpus, self.split, self.run.data.tokenizer, bench.cache, **how)
