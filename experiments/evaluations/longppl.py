"""LongPPL over the documents of a corpus."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from experiments import facts
from experiments.bench import Bench
from experiments.evaluations.base import Rows, TableRow
from experiments.evaluations.entry import EvalEntry, count_of
from experiments.evaluations.text_base import TEXT_FIELDS, LengthsOfTextSpec, after_bos, of_text
from experiments.evaluations.texts import Corpus, corpus_of, open_corpus
from experiments.programs import Program, Scoring
from experiments.runs import Source
from nope.data import TaskData, load_tokenizer, prefix_of
from nope.data.documents import Documents
from nope.data.spans import encode_spans
from nope.evals import longppl
from nope.evals.generation import Generator
from nope.evals.longppl import Evaluator, Rule
from nope.records import Records
from nope.runtime.amounts import amount
from nope.variables import Variables


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongpplSpec(LengthsOfTextSpec):
    """LongPPL (`nope.evals.longppl`).

    corpus: one source, read with the run's tokenizer. lengths: tokens of the texts. budget: tokens
    of all texts of a length. evaluator: the model that chooses the key tokens; None for the
    run itself. judge_prefix: token ids before the texts of one with another tokenizer.
    """

    corpus: Corpus
    split: str
    rule: Rule
    budget: int
    evaluator: Source | None = None
    judge_prefix: tuple[int, ...] | None = None
    kind = 'longppl'
    fields = ('times', 'tokens', 'corpus', 'evaluator', 'longppl', *TEXT_FIELDS)
    command = 'longppl:PATH'
    defaults: ClassVar = {
        'short': None,
        'stride': None,
        'gain': 2.0,
        'ceiling': 2.0,
        'budget': 262144,
        'bos': None,
    }
    title = 'LongPPL'

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = cls.own_section(asked)
        common = of_text(asked, section)
        measured = asked.lengths()
        asked.check_reach(common['position'], max(measured))
        short, field = asked.train_length, 'times'
        if 'tokens' in asked.entry:
            half, field = min(measured) // 2, 'tokens'
            short = max(min(short or half, half), 1)
        rule = Rule(
            short=count_of(section, 'short', short),
            stride=count_of(section, 'stride', max(short // 4, 1)),
            gain=section.finite('gain', positive=True),
            ceiling=section.finite('ceiling', positive=True),
        )
        if min(measured) <= rule.short:
            raise asked.entry.error(
                field, f'texts are longer than the short context, {rule.short} tokens'
            )
        corpus, split = corpus_of(asked)
        judge, judge_prefix = _evaluator(asked, max(measured)), None
        if judge is not None and judge.data.tokenizer != asked.run.data.tokenizer:
            judge_prefix = prefix_of(load_tokenizer(judge.data.tokenizer), None)
        return cls(
            corpus=corpus,
            split=split,
            lengths=measured,
            rule=rule,
            budget=section.at_least('budget', max(measured)),
            evaluator=judge,
            judge_prefix=judge_prefix,
            **common,
        )

    @property
    def read_split(self) -> str:
        return self.split

    def check(self, bench: Bench) -> None:
        counts = self._documents(bench).lengths
        longppl.check(counts, self.lengths, self.rule, budget=self.budget)
        if self.evaluator is not None and self.evaluator.data.tokenizer != self.run.data.tokenizer:
            for source in (self.run, self.evaluator):
                encode_spans(load_tokenizer(source.data.tokenizer), '')

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        return longppl.run(
            self.generator(bench, variables),
            self.tokenizer,
            self._documents(bench),
            self.lengths,
            self.rule,
            budget=self.budget,
            evaluator=self._evaluator(bench),
            batch_size=max(bench.batch_tokens // max(self.lengths), 1),
            **how,
        )

    def programs(self, rows: Rows) -> Iterator[Program]:
        window = self.rule.short + self.rule.stride
        judge = self.model if self.evaluator is None else self.evaluator.model
        for model in dict.fromkeys((self.model, judge)):
            for length in self.lengths:
                yield Scoring(model, length, rows(length, Scoring.rules), length - 1)
            yield Scoring(model, window, rows(window, Scoring.rules), self.rule.stride)

    def measured_on(self, found: Records) -> tuple[str, str]:
        stated, token = found.attributes, found.attributes['token']
        return str(stated['corpus']), (
            f'key tokens of texts of up to {self.extent:,} {token}s, by short contexts of '
            f'{stated["short"]:,} in steps of {stated["stride"]:,}, chosen by the model '
            f'{stated["evaluator"]}, {amount(stated["scored"])} {token}s for each length'
            + after_bos(found, 'context')
        )

    def rows(self, found: Records) -> list[TableRow]:
        """LongPPL by length, NaN where no token is a key token, and how many there are."""
        lengths, texts = found.coordinates['length'].tolist(), found['documents'].tolist()
        return [
            TableRow(self.kind, what, n, float(found[value][k]), unit, texts[k], int(found[of][k]))
            for what, value, unit, of in (
                ('key tokens', 'longppl', 'perplexity', 'key_tokens'),
                ('number of key tokens', 'key_tokens', 'tokens', 'tokens'),
            )
            for k, n in enumerate(lengths)
        ]

    def _documents(self, bench: Bench) -> Documents:
        how = {'bos': self.bos, 'once': True}
        return open_corpus(self.corpus, self.split, self.run.data.tokenizer, bench.cache, **how)

    def _evaluator(self, bench: Bench) -> Evaluator | None:
        if self.evaluator is None:
            return None
        model, variables = self.evaluator.model, bench.variables(self.evaluator)
        generator = Generator(model, variables, bench.mesh, batch_tokens=bench.batch_tokens)
        tokenizer = load_tokenizer(self.evaluator.data.tokenizer)
        return Evaluator(generator, tokenizer, facts.describe_model(model))


def _evaluator(asked: EvalEntry, length: int) -> Source | None:
    """The run that says which tokens are key; None where it is the one that is measured."""
    name = asked.entry.named('evaluator', 'a run')
    if name is None:
        return None
    found = asked.scope.run(name, asked.entry.path('evaluator'))
    if isinstance(found.data, TaskData):
        raise asked.entry.error('evaluator', 'it was trained on a task, and not on text')
    if found.data.tokenizer == asked.run.data.tokenizer:
        reads = found.model.longest
        if reads is not None and length > reads:
            raise asked.entry.error('evaluator', f'its positions end at {reads}, texts at {length}')
    return found
