"""Distance of a model's attention patterns from those of another one, on the same tokens."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from experiments import facts
from experiments.bench import Bench
from experiments.evaluations import task_examples
from experiments.evaluations.base import EvalSpec, Rows
from experiments.evaluations.entry import EvalEntry, count_of
from experiments.evaluations.windows import Windows, blocks, manner, windows
from experiments.programs import AttentionRows, Program, Scoring
from experiments.runs import Source, first_run, text_of
from experiments.scope import MOST_TOKENS
from experiments.specs import identifier
from nope.data import TaskData, tokenizer_of
from nope.evals import attention_distance, attention_rows, batching
from nope.evals.attention_distance import SequenceGroup
from nope.evals.attention_rows import Model
from nope.evals.generation import Generator
from nope.model import ModelConfig
from nope.records import FLOOR, INSIDE, Records, unigram_entropy

EXAMPLES = 10  # of each length of a task, as in the paper


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionDistanceSpec(EvalSpec):
    """Attention distance (`nope.evals.attention_distance`, arXiv 2305.19466).

    other: the model whose patterns are compared with the run's, of the same data.
    windows: of text, of each length. Models of a task have none.
    examples: of a task, held out, of each length. Their prompts and targets are read.
    queries: of each sequence; None for all.
    """

    other: Source
    windows: tuple[Windows, ...] = ()
    examples: int | None = None
    queries: int | None = None
    kind = 'attention_distance'
    of_tasks = None
    fields = ('other', 'seeds_further', 'examples', 'queries', 'times', 'evaluation')

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        entry = asked.entry
        other = _other(asked)
        queries = count_of(entry, 'queries', None)
        if isinstance(first_run(asked.run).data, TaskData):
            for field in ('times', 'evaluation'):
                if field in entry:
                    raise entry.error(field, 'the run is that of a task, which has lengths itself')
            examples = entry.at_least('examples', 1) if 'examples' in entry else EXAMPLES
            return cls(run=asked.run, other=other, examples=examples, queries=queries)
        if 'examples' in entry:
            raise entry.error('examples', 'the run reads text; evaluation.windows says how much')
        lengths = asked.lengths()
        for model in (asked.run.model, other.model):
            if model.longest is not None and max(lengths) > model.longest:
                raise ValueError(
                    f'{entry.path("times")}: sequences of {max(lengths)} tokens; '
                    f'{model.describe_position()} positions end at {model.longest}'
                )
        section = asked.section('evaluation')
        cut = tuple(windows(length, section, max(lengths)) for length in lengths)
        return cls(run=asked.run, other=other, windows=cut, queries=queries)

    @property
    def model(self) -> ModelConfig:
        return self.run.model

    @property
    def extent(self) -> int:
        if not self.windows:
            return task_examples.longest(self.task_data).read
        return max(w.length for w in self.windows)

    @property
    def known(self) -> dict[str, Any]:
        read: dict[str, Any] = {}
        if not self.windows:
            task = self.task_data.task
            read = {'task': task.name, 'longest': task.longest}
        elif text_of(self.run).bos:
            read = {'bos': True}
        return {
            **super().known,
            **read,
            'other': facts.describe_model(self.other.model),
            'other_run_id': identifier(self.other),
            'other_seed': self.other.seed,
        }

    @property
    def read_split(self) -> str | None:
        return self.windows[0].split if self.windows else None

    @property
    def own_text(self) -> bool:
        return bool(self.windows)

    def check(self, bench: Bench) -> None:
        for group in self._groups(bench):
            for model in (self.run.model, self.other.model):
                attention_rows.check_fits(model, group.sequences)

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        del folder
        first, second = (Model(run.model, bench.variables(run)) for run in (self.run, self.other))
        found = attention_distance.run(
            first,
            second,
            self._groups(bench),
            mesh=bench.mesh,
            queries=self.queries,
            progress=bench.bar('attention distance'),
        )
        return found, self._inside(bench)

    def programs(self, rows: Rows) -> Iterator[Program]:
        parts = rows(MOST_TOKENS, AttentionRows.rules)  # one of such a length for each part
        models = (self.run.model, self.other.model)
        lengths = [w.length for w in self.windows] or [batching.padded_length(self.extent)]
        for length in lengths:
            queries = len(attention_rows.chosen(length, self.queries))
            together = attention_rows.at_once(models, length)
            for model in dict.fromkeys(models):
                yield AttentionRows(model, min(queries, together), length, parts)
        scored = min(lengths) + 1
        yield Scoring(self.model, scored, rows(scored, Scoring.rules), scored)

    def measured_on(self, found: Records) -> tuple[str, str]:
        lengths = found.coordinates['length']
        count, queries = int(found['examples'].sum()), found.attributes['queries']
        rows = 'all queries' if queries is None else f'{queries} queries of each'
        if 'task' in found.attributes:
            what = f'{found.attributes["task"]} of lengths {lengths[0]} to {lengths[-1]}'
            return what, f'{count:,} examples, prompt and target, {rows}'
        each, token = found['examples'][0], found.attributes['token']
        what = f'{each:,} windows of up to {lengths[-1]:,} {token}s of {found.attributes["data"]}'
        return what, f'{found.attributes["split"]} split{manner(found.attributes)}, {rows}'

    def _inside(self, bench: Bench) -> dict[str, float]:
        """Loss on what is to be predicted in sequences of the lengths of training, and the least
        that frequencies alone reach there: patterns of models that know no more tell nothing."""
        if self.windows:
            read = list(blocks(bench, self.run, min(self.windows, key=lambda w: w.length)).tokens)
            asked = [(tokens[:1], tokens[1:]) for tokens in read]
        else:
            assert self.examples is not None
            by_length, longest = task_examples.by_length(self.task_data, self.examples), 0
            longest = max(min(by_length), self.task_data.task.longest)
            some = [x for length, found in by_length.items() if length <= longest for x in found]
            asked = [(example.prompt, example.target) for example in some]
        prompts, answers = zip(*asked, strict=True)
        model = self.run.model, bench.variables(self.run), bench.mesh
        scores = Generator(*model, batch_tokens=bench.batch_tokens).score(prompts, answers)
        loss = -float(np.concatenate([score.log_probs for score in scores]).mean())
        return {INSIDE: loss, FLOOR: unigram_entropy(np.concatenate(answers))}

    def _groups(self, bench: Bench) -> list[SequenceGroup]:
        """Sequences that both models read, by the length of the problem or of the window."""
        if self.windows:
            read = [(w.length, blocks(bench, self.run, w).tokens) for w in self.windows]
            return [SequenceGroup(length, list(found[:, :-1])) for length, found in read]
        assert self.examples is not None
        found = task_examples.by_length(self.task_data, self.examples)
        sequences = {n: [task_examples.read(ids) for ids in some] for n, some in found.items()}
        return [SequenceGroup(n, some) for n, some in sequences.items()]


def _other(asked: EvalEntry) -> Source:
    """The model to compare with. ValueError for one of other layers or data."""
    entry = asked.entry
    name, field = entry.get('other', ''), entry.path('other')
    further = entry.at_least('seeds_further', 0) if 'seeds_further' in entry else 0
    other = asked.scope.run(name, field, further)
    if other.model.attention_layers != asked.run.model.attention_layers:
        raise entry.error(
            'other',
            f'it has {other.model.attention_layers} layers with attention, the run has '
            f'{asked.run.model.attention_layers}; layers are compared one by one',
        )
    first, second = first_run(asked.run).data, first_run(other).data
    if isinstance(first, TaskData) or isinstance(second, TaskData):
        alike = first == second  # the same examples, too
    else:
        alike = tokenizer_of(asked.run.data).fingerprint == tokenizer_of(other.data).fingerprint
    if not alike:
        raise entry.error('other', 'it reads other data than the run, or through other tokens')
    if not other.model.causal:
        raise entry.error('other', 'it is an encoder, whose rows are not compared')
    if identifier(other) == identifier(asked.run):
        raise entry.error(
            'other',
            'it is the run itself; with seeds_further=1 it is that of the next of the seeds, of '
            'which there must be two or more',
        )
    return other
