"""Exact match on a synthetic task: the share of right answers by length (arXiv 2305.19466).

An answer is what greedy decoding writes. One pass over a prompt and its target, t_1 to t_n and EOS,
decides most of them without writing anything. Let m be the number of leading target tokens that are
each the most likely one.

Greedy decoding begins with t_1 to t_m, and its next token is the most likely one after these. By
induction: having written t_1 to t_k, k < m, it is in the state of the pass before t_(k + 1).

* If all tokens are the most likely ones, EOS included, decoding writes the target and ends: right.
* Otherwise its token m + 1 is not the target's. That is wrong if whole targets are compared. A
  final answer is decided by the written part if that token is EOS. Otherwise the rest has to be
  written, since another text may state the same answer.

With a scratchpad the target is long and its final answer alone counts, as in the released code: an
answer behind a wrong scratchpad is right, and a text without a final answer is wrong. The
scratchpad is read strictly and measured apart.

An example too long for the limit is refused, or counts as wrong without being asked.

A model may follow the length of the whole sequence (`ModelConfig.follows_length`). The pass tells
it the length of prompt and target, decoding that of prompt and limit: both may differ. Rounding may
decide between tokens that are as likely to the last digits.

An encoder decodes nothing: its answer is the most likely token of each masked place
(`nope.evals.masked_answers`). It takes tasks whose whole targets are compared.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh

from nope.data.tasks import Example, SteppedTask, Task, TaskData, Tokenised, answers, tokenised
from nope.data.tokenizers import Tokenizer
from nope.evals.forward import Progress
from nope.evals.generation import Generator, Options
from nope.evals.masked_answers import MaskedScorer
from nope.evals.samples import SampleLog
from nope.model import ModelConfig
from nope.records import Measure, Records
from nope.runtime.errors import FieldError
from nope.variables import Variables

Answering = Generator | MaskedScorer
CHUNK = 2048  # examples that are asked between two writes to the log, at most


class ExampleQuestion(NamedTuple):
    """One example. split: 'validation', of the lengths of training, or 'test'. number: among those
    of its split and length."""

    split: str
    number: int
    example: Example

    @property
    def name(self) -> str:
        """Its key in a log."""
        return f'{self.split}/{self.example.length}/{self.number}'


@dataclasses.dataclass(frozen=True)
class Asked:
    """A task's questions. limit: tokens of a prompt and its answer. keep_long: whether a longer
    example is kept, and wrong.

    FieldError for an example that has more, and with keep_long where all have.
    """

    task: Task
    tokenizer: Tokenizer
    questions: tuple[ExampleQuestion, ...]
    limit: int
    keep_long: bool = False

    def __post_init__(self) -> None:
        long = next((q for q in self.questions if q not in self.fitting), None)
        if long is None or (self.keep_long and self.fitting):
            return
        raise FieldError(
            'limit',
            self.limit,
            f'the {long.split} example {long.number} of length {long.example.length} of '
            f'{self.task.name} has {self.ids(long).length + 1} tokens',
        )

    @functools.cached_property
    def fitting(self) -> frozenset[ExampleQuestion]:
        """Those whose prompt and target, EOS included, have no more tokens than the limit."""
        return frozenset(q for q in self.questions if self.ids(q).length + 1 <= self.limit)

    def ids(self, question: ExampleQuestion) -> Tokenised:
        return tokenised(self.task, self.tokenizer, question.example)

    @functools.cached_property
    def room(self) -> int:
        """Tokens that an answer may have, as many behind every prompt, whichever are asked first:
        the limit less the longest prompt that fits."""
        return self.limit - max(len(self.ids(question).prompt) for question in self.fitting)


def ask(data: TaskData, tests: int | None, limit: int, keep_long: bool = False) -> Asked:
    """The first `tests` examples of every length of validation and of the test, in the order of
    the data set, or all. FieldError as `Asked`, and ValueError where there is none."""
    seen: Counter[tuple[str, int]] = Counter()
    chosen = []
    for split, example in data.held_out():
        number = seen[split, example.length]
        seen[split, example.length] += 1
        if tests is None or number < tests:
            chosen.append(ExampleQuestion(split, number, example))
    if not chosen:
        raise ValueError(f'{data.task.name} has no example that is held out')
    return Asked(data.task, data.load_tokenizer(), tuple(chosen), limit, keep_long)


def no_validation(data: TaskData) -> str:
    """Message about a task whose sizes leave no validation example."""
    sizes = data.sizes or data.task.paper_sizes
    return (
        f'{data.task.name} has no example of validation left: validation is {sizes.validation}, '
        'and what equal numbers of examples of each length leave over is taken from it; raise it'
    )


@functools.lru_cache(maxsize=2)
def validation(data: TaskData, share: float) -> tuple[Tokenised, ...]:
    """That share of validation, its first examples in the order of the data set, at least one. They
    are kept for later runs. ValueError where there is none."""
    found = data.dataset().validation
    if not found:
        raise ValueError(no_validation(data))
    tokenizer = data.load_tokenizer()
    chosen = found[: max(round(share * len(found)), 1)]
    return tuple(tokenised(data.task, tokenizer, example) for example in chosen)


def answering(
    config: ModelConfig, variables: Variables, mesh: Mesh, *, batch_tokens: int
) -> Answering:
    """The model as it answers: a decoder writes, an encoder fills masked places."""
    kind = Generator if config.causal else MaskedScorer
    return kind(config, variables, mesh, batch_tokens=batch_tokens)


def sequence_accuracy(generator: Answering, examples: Sequence[Tokenised]) -> float:
    """Share of examples whose whole target greedy decoding writes, scratchpad and EOS included. One
    pass decides each: every token of the target has to be the most likely one."""
    right = 0
    for start in range(0, len(examples), CHUNK):
        chunk = examples[start : start + CHUNK]
        asked = [x.prompt for x in chunk], [x.target for x in chunk]
        scores = generator.score(*asked, written=True)
        right += sum(bool(score.greedy.all()) for score in scores)
    return right / len(examples)


def run(generator: Answering, asked: Asked, log: SampleLog, progress: Progress = iter) -> Records:
    """Accuracy and number of examples by length, [length]; with a scratchpad also the shares of
    examples whose scratchpad parses (`parsed`) and has every step right (`reasoned`).

    Lengths up to L are those of validation, the others of the test. Attributes: `inside` and
    `beyond`, the accuracy over all examples of each, None for no examples. `scratchpad` is the
    format. `right_unparsed` counts right answers behind an unparsed scratchpad, `too_long` the
    examples beyond the limit. Rows of the log, by 'split/length/number': correct; prompt, reference
    and prediction, the written text. It ends at the first wrong token if `whole` is False.
    `matched` counts the leading tokens of the target that are right. A scratchpad has steps,
    right_steps, parsed and problem. What it has is not asked again.
    """
    missing = [question for question in asked.questions if question.name not in log]
    log.append(
        {
            question.name: _row(asked, question, 0, False, '') | {'correct': False}
            for question in missing
            if question not in asked.fitting
        }
    )
    missing = [question for question in missing if question in asked.fitting]
    for start in progress(range(0, len(missing), CHUNK)):
        chunk = missing[start : start + CHUNK]
        log.append(dict(zip((q.name for q in chunk), _rows(generator, asked, chunk), strict=True)))
    rows = [log[question.name] for question in asked.questions]
    lengths = sorted({row['length'] for row in rows})
    by_length = [[row for row in rows if row['length'] == n] for n in lengths]
    samples = np.array([len(some) for some in by_length])
    measures = {'accuracy': _by_length(by_length, lambda row: row['correct'])}
    facts: dict[str, Any] = {'scratchpad': asked.task.style.name}
    if asked.task.style:
        measures['parsed'] = _by_length(by_length, lambda row: row['parsed'])
        measures['reasoned'] = _by_length(by_length, lambda row: row['right_steps'] == row['steps'])
        facts['right_unparsed'] = sum(row['correct'] and not row['parsed'] for row in rows)
    return Records(
        attributes={
            'evaluation': 'exact_match',
            'task': asked.task.name,
            'longest': asked.task.longest,
            'limit': asked.limit,
            'inside': _share(rows, 'validation'),
            'beyond': _share(rows, 'test'),
            'too_long': len(asked.questions) - len(asked.fitting),
            **facts,
        },
        measures={**measures, 'samples': Measure(samples, ('length',), '')},
        coordinates={'length': np.array(lengths)},
    )


def _by_length(rows: Sequence[Sequence[dict[str, Any]]], right: Callable[..., bool]) -> Measure:
    """Share of the rows of each length that are right."""
    shares = [np.mean([right(row) for row in some]) for some in rows]
    return Measure(np.array(shares), ('length',), '')


def _share(rows: Sequence[dict[str, Any]], split: str) -> float | None:
    found = [row['correct'] for row in rows if row['split'] == split]
    return float(np.mean(found)) if found else None


def _rows(
    generator: Answering, asked: Asked, chunk: Sequence[ExampleQuestion]
) -> list[dict[str, Any]]:
    """The log's rows of some questions: as the pass decides them, or what decoding writes."""
    ids = [asked.ids(question) for question in chunk]
    scores = generator.score([x.prompt for x in ids], [x.target for x in ids], written=True)
    whole, eos = asked.task.form is answers.WHOLE, asked.tokenizer.eos_id
    rows = []
    for question, x, score in zip(chunk, ids, scores, strict=True):
        matched = int(np.logical_and.accumulate(score.greedy).sum())
        made = score.best[: matched + 1]
        right = matched == len(x.target)
        text = question.example.target if right else asked.tokenizer.decode(made)
        row = _row(asked, question, matched, bool(made[-1] == eos), text, right or not whole)
        rows.append(row)
    waiting = [] if whole else [i for i, row in enumerate(rows) if not row['whole']]
    if not waiting:
        return rows
    assert not isinstance(generator, MaskedScorer)  # encoders have tasks of whole targets
    options = Options(new_tokens=asked.room, stop_ids=(eos,))
    decoded = generator.generate([ids[i].prompt for i in waiting], options)
    for i, written in zip(waiting, decoded, strict=True):
        text = asked.tokenizer.decode(written)
        rows[i] = _row(asked, chunk[i], rows[i]['matched'], True, text)
    return rows


def _row(
    asked: Asked,
    question: ExampleQuestion,
    matched: int,
    whole: bool,
    text: str,
    checked: bool = True,
) -> dict[str, Any]:
    """A question's row. text: predicted. checked: whether that decides; it is wrong otherwise. A
    scratchpad adds its steps, how many are right, and the first problem."""
    row = {
        'split': question.split,
        'length': question.example.length,
        'matched': matched,
        'prompt': asked.task.prompt(question.example),
        'reference': question.example.target,
        'whole': whole,
    }
    if not checked:
        return {**row, 'correct': False, 'prediction': text}
    task, example = asked.task, question.example
    row |= {'prediction': text, 'correct': task.form.matches(text, example.target)}
    if not isinstance(task, SteppedTask) or not task.style:
        return row
    found = task.check(example.source, text)
    return {
        **row,
        'steps': len(found.right),
        'right_steps': sum(found.right),
        'parsed': found.parsed,
        'problem': next(iter(found.problems), ''),
    }
