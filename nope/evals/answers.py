"""Greedy answers to prompts of tasks at lengths, scored and logged a batch at a time."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nope.data import prefix_of
from nope.data.chat import Chat, prompt_ids
from nope.data.tokenizers import Tokenizer
from nope.evals.forward import Progress
from nope.evals.generation import Generator, Options
from nope.evals.samples import SampleLog
from nope.records import Measure

logger = logging.getLogger(__name__)

BATCH = 32  # questions between two writes to the log


class Sample(NamedTuple):
    """A prompt and what its answer is held against. tokens: of the text alone, without prefix."""

    text: str
    answers: tuple[str, ...]
    tokens: int


class Question(NamedTuple):
    """key: in a log. prompt: makes its token ids. row: what the log keeps of a generated text."""

    key: str
    prompt: Callable[[], np.ndarray]
    row: Callable[[str], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Part:
    """Samples of one task at one length.

    budget: tokens of an answer. score: rates a prediction of a sample, 0 .. 1. cleaned: makes the
    prediction to keep and score from generated text. opening: the answer begins at its last place
    in a sample's text, and a chat leaves that to the assistant; '' for nowhere.
    system: the first turn of a chat; '' for none.
    """

    task: str
    length: int
    budget: int
    samples: Sequence[Sample]
    score: Callable[[str, Sample], float]
    cleaned: Callable[[str], str] = str
    opening: str = ''
    system: str = ''

    def key(self, index: int) -> str:
        """Name of a sample in a log."""
        return key(self.task, self.length, index)

    def question(
        self, index: int, tokenizer: Tokenizer, bos: bool | None, chat: Chat | None
    ) -> Question:
        sample = self.samples[index]

        def prompt() -> np.ndarray:
            opening = sample.text[sample.text.rindex(self.opening) :] if self.opening else ''
            return prompt_ids(tokenizer, sample.text, bos, chat, opening, self.system)

        def row(text: str) -> dict[str, Any]:
            prediction = self.cleaned(text)
            return {
                'prediction': prediction,
                'score': self.score(prediction, sample),
                'answers': list(sample.answers),
                'tokens': sample.tokens,
            }

        return Question(self.key(index), prompt, row)


def key(task: str, length: int, index: int) -> str:
    return f'{task}/{length}/{index}'


def run(
    generator: Generator,
    tokenizer: Tokenizer,
    parts: Sequence[Part],
    *,
    log: SampleLog,
    bos: bool | None,
    chat: Chat | None = None,
    progress: Progress = iter,
) -> None:
    """Lets the model answer every sample that `log` has not, up to one of the tokenizer's
    `stop_ids`.

    bos: as `nope.data.prefix` has it. chat: asks in turns. Answers are logged as by `ask`, each
    under 'task/length/index' with its prediction, its score, what it is held against, and the
    tokens of its prompt. ValueError, before anything is generated, for a log of other samples, and
    for settings that do not fit each other or the tokenizer.
    """
    prefix_of(tokenizer, bos)
    groups = []
    for part in parts:
        missing = [i for i in range(len(part.samples)) if not _answered(part, i, log)]
        questions = [part.question(i, tokenizer, bos, chat) for i in missing]
        groups.append((options(part.budget, tokenizer), questions))
    logger.info('%d samples are answered', len(log))
    ask(generator, tokenizer, groups, log=log, progress=progress)


def ask(
    generator: Generator,
    tokenizer: Tokenizer,
    groups: Sequence[tuple[Options, Sequence[Question]]],
    *,
    log: SampleLog,
    progress: Progress = iter,
) -> None:
    """Logs the answers to questions, `BATCH` of a group at a time."""
    batches = [
        (how, questions[start : start + BATCH])
        for how, questions in groups
        for start in range(0, len(questions), BATCH)
    ]
    for how, batch in progress(batches):
        made = generator.generate([question.prompt() for question in batch], how)
        told = zip(batch, map(tokenizer.decode, made), strict=True)
        log.append({question.key: question.row(text) for question, text in told})


def options(budget: int, tokenizer: Tokenizer) -> Options:
    """Greedy decoding of so many tokens, up to one of the tokenizer's `stop_ids`."""
    return Options(new_tokens=budget, stop_ids=tokenizer.stop_ids)


def measures(
    rows: Mapping[tuple[int, str], Sequence[Mapping[str, Any]]],
    budgets: Mapping[str, int],
    mean: Callable[[list[float]], float],
    **counts: Sequence[int],
) -> dict[str, Measure]:
    """Measures of a log's rows by length and task, each with each.

    `score` 0 .. 100, the `mean` of a part; `samples`; `tokens`, the mean of prompt and budget
    without BOS; `average` [length], the plain mean of `score` over tasks. counts: of each part.
    """
    lengths = len({length for length, _ in rows})

    def table(values: Sequence[Any], unit: str = '') -> Measure:
        return Measure(np.array(values).reshape(lengths, -1), ('length', 'task'), unit)

    score = table([mean([row['score'] for row in part]) for part in rows.values()], '0..100')
    tokens = [
        np.mean([row['tokens'] for row in part]) + budgets[task] for (_, task), part in rows.items()
    ]
    return {
        'score': score,
        'samples': table([len(part) for part in rows.values()]),
        **{name: table(count) for name, count in counts.items()},
        'tokens': table(tokens),
        'average': Measure(score.values.mean(axis=1), ('length',), '0..100'),
    }


def _answered(part: Part, index: int, log: SampleLog) -> bool:
    name, sample = part.key(index), part.samples[index]
    if name not in log:
        return False
    if log[name]['answers'] != list(sample.answers) or log[name]['tokens'] != sample.tokens:
        raise ValueError(f'log has another prompt for {name!r}: it is of other files or words')
    return True
