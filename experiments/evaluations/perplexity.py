"""Perplexity in sliding windows over the documents of a corpus."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, Self

from experiments.bench import Bench
from experiments.config import Section
from experiments.evaluations.base import (
    TEXT_FIELDS,
    Asked,
    Rows,
    TextSpec,
    after_bos,
    of_text,
    open_log,
)
from experiments.programs import Program, SlidingWindows
from nope import data
from nope.data import SPLITS, DataConfig
from nope.data.documents import Documents, open_documents
from nope.evals import sliding
from nope.records import Records
from nope.runtime.amounts import amount

CORPUS = {'source': '', 'field': 'text', 'record_length': None, 'split': 'test'}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerplexitySpec(TextSpec):
    """Perplexity in sliding windows (`nope.evals.sliding`).

    corpus: one source, read with the run's tokenizer. lengths: of the windows. stride: tokens
    scored in each. budget: tokens scored at each length. published: BOS stands
    before each document and not in every window, and each length scores tokens of its own.
    """

    corpus: DataConfig
    split: str
    lengths: tuple[int, ...]
    stride: int
    budget: int
    published: bool = True
    kind = 'perplexity'
    fields = ('times', 'corpus', 'perplexity', *TEXT_FIELDS)

    @classmethod
    def from_entry(cls, asked: Asked) -> Self:
        section = asked.section('perplexity')
        common = of_text(asked, section)
        measured = asked.lengths() if 'times' in asked.entry else (asked.train_length,)
        asked.check_reach(common['position'], max(measured))
        stride = max(asked.train_length // 8, 1)
        if section.optional('stride') is not None:
            stride = section.at_least('stride', 1)
        if stride >= min(measured):
            rule = f'windows of {min(measured)} tokens are to be longer than the stride, {stride}'
            if section.optional('stride') is not None:
                raise section.error('stride', rule)
            raise asked.entry.error('times', f'{rule}, an eighth of L')
        corpus, split = corpus_of(asked)
        return cls(
            corpus=corpus,
            split=split,
            lengths=measured,
            stride=stride,
            budget=section.at_least('budget', stride),
            published=section['published'],
            **common,
        )

    @property
    def extent(self) -> int:
        return max(self.lengths)

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
            aligned=not self.published,
        )

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = self.measured(bench)
        found = sliding.run(
            self.model,
            variables,
            self._documents(bench),
            self.lengths,
            stride=self.stride,
            budget=self.budget,
            aligned=not self.published,
            mesh=bench.mesh,
            batch_tokens=bench.batch_tokens,
            log=open_log(folder),
            progress=bench.bar('perplexity'),
        )
        return found, more

    def programs(self, rows: Rows) -> Iterator[Program]:
        for length in self.lengths:
            batch = rows(length, SlidingWindows.rules)
            yield SlidingWindows(self.model, self.stride, length, batch)

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts, token = found.attributes, found.attributes['token']
        start = after_bos(found, 'document' if self.published else 'window')
        return str(facts['corpus']), (
            f'windows of up to {self.extent:,} {token}s, {facts["stride"]:,} apart, '
            f'{amount(facts["scored"])} {token}s scored for each length{start}'
        )

    def _documents(self, bench: Bench) -> Documents:
        return open_documents(
            self.corpus, split=self.split, cache=bench.cache, bos=self.bos, once=self.published
        )


def corpus_of(asked: Asked) -> tuple[DataConfig, str]:
    """The entry of `corpora` that the evaluation names, read with the run's tokenizer, and its
    split."""
    corpora = asked.scope.group('corpora')
    name = asked.entry.get('corpus', '')
    if name not in corpora:
        raise ValueError(
            f'{asked.where}.corpus is {name!r}; the config has the corpora {list(corpora)}'
        )
    where = f'corpora.{name}'
    default = {**data.sources.field_defaults(), **CORPUS}
    corpus = Section(where, default, asked.scope.ledger).changed(corpora[name], where)
    corpus = corpus.with_defaults({'tokenizer': asked.run.data.tokenizer}).allowing('record_length')
    later = default.keys() - CORPUS.keys() - corpora[name].keys()  # figures were drawn without them
    corpus = corpus.detailing(*data.sources.execution_fields(), *later)
    config = data.from_section(corpus, asked.train_length, corpus.path)
    return config, corpus.choice('split', SPLITS)
