"""Greedy answers to prompts of tasks at lengths, scored and logged a batch at a time."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nope.data import prefix_of
from nope.data.chat import Chat, prompt_ids
from nope.data.tokenizers import Tokenizer
from nope.evals.forward import Progress
from nope.evals.generation import Generator, Options
from nope.evals.samples import SampleLog

logger = logging.getLogger(__name__)


class Sample(NamedTuple):
    """A prompt and what its answer is held against. tokens: of the text alone, without prefix."""

    text: str
    answers: tuple[str, ...]
    tokens: int


@dataclasses.dataclass(frozen=True)
class Part:
    """Samples of one task at one length.

    budget: tokens of an answer. score: rates a prediction of a sample, 0 .. 1. cleaned: makes the
    prediction to keep and score from generated text. opening: the answer begins at its last place
    in a sample's text, and a chat leaves that to the assistant; '' for nowhere.
    """

    task: str
    length: int
    budget: int
    samples: Sequence[Sample]
    score: Callable[[str, Sample], float]
    cleaned: Callable[[str], str] = str
    opening: str = ''

    def key(self, index: int) -> str:
        """Name of a sample in a log."""
        return key(self.task, self.length, index)

    def prompt(
        self, index: int, tokenizer: Tokenizer, bos: bool | None, chat: Chat | None
    ) -> np.ndarray:
        """Token ids of a sample."""
        text = self.samples[index].text
        opening = text[text.rindex(self.opening) :] if self.opening else ''
        return prompt_ids(tokenizer, text, bos, chat, opening)


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
    batch_size: int = 32,
    progress: Progress = iter,
) -> None:
    """Lets the model answer every sample that `log` has not, up to one of the tokenizer's
    `stop_ids`.

    bos: as `nope.data.prefix` has it. chat: asks in turns. Answers are logged batch_size at a time,
    each under 'task/length/index' with its prediction, its score, what it is held against, and the
    tokens of its prompt. ValueError, before anything is generated, for a log of other samples, and
    for settings that do not fit each other or the tokenizer.
    """
    if batch_size < 1:
        raise ValueError(f'batch_size is {batch_size}; it must be at least 1')
    prefix_of(tokenizer, bos)
    waiting = []
    for part in parts:
        missing = [i for i in range(len(part.samples)) if not _answered(part, i, log)]
        starts = range(0, len(missing), batch_size)
        waiting += [(part, missing[start : start + batch_size]) for start in starts]
    logger.info('%d samples are answered', len(log))
    for part, batch in progress(waiting):
        made = generator.generate(
            [part.prompt(index, tokenizer, bos, chat) for index in batch],
            options(part.budget, tokenizer),
        )
        rows = {}
        for index, ids in zip(batch, made, strict=True):
            sample, prediction = part.samples[index], part.cleaned(tokenizer.decode(ids))
            rows[part.key(index)] = {
                'prediction': prediction,
                'score': part.score(prediction, sample),
                'answers': list(sample.answers),
                'tokens': sample.tokens,
            }
        log.append(rows)


def options(budget: int, tokenizer: Tokenizer) -> Options:
    """Greedy decoding of so many tokens, up to one of the tokenizer's `stop_ids`."""
    return Options(new_tokens=budget, stop_ids=tokenizer.stop_ids)


def _answered(part: Part, index: int, log: SampleLog) -> bool:
    name, sample = part.key(index), part.samples[index]
    if name not in log:
        return False
    if log[name]['answers'] != list(sample.answers) or log[name]['tokens'] != sample.tokens:
        raise ValueError(f'log has another prompt for {name!r}: it is of other files or words')
    return True
