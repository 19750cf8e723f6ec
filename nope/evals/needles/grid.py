"""Evaluation of a needle task on passkey's grid of lengths and depths, by greedy decoding."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from nope.data import Tokenizer
from nope.data.templates import Template
from nope.evals import passkey_plan
from nope.evals.forward import Progress
from nope.evals.generation import Generator, Options
from nope.evals.needles import cells
from nope.evals.needles.cells import Question
from nope.evals.needles.task import Asked, Hidden, Task
from nope.evals.samples import SampleLog
from nope.records import Records


@dataclasses.dataclass(frozen=True)
class NeedlePlan:
    """Questions that fit, longest first, and their tokenisation."""

    task: Task
    template: Template
    tokenizer: Tokenizer
    max_length: int
    seed: int
    bos: bool
    tests: int
    questions: tuple[Question, ...]

    def ask(self, question: Question) -> Asked:
        """One question: prompt and answer together take at most its length."""
        return self.task.build(
            self.tokenizer,
            question.length - self.task.new_tokens,
            _depth(question),
            _rng(self.seed, question),
            filler=self.template.filler,
            bos=self.bos,
        )


def plan(
    task: Task,
    template: Template,
    tokenizer: Tokenizer,
    max_length: int,
    seed: int = 42,
    *,
    bos: bool,
    tests: int = passkey_plan.TESTS,
) -> NeedlePlan:
    """The questions of one task for one tokenizer: 16 lengths by 10 depths, as in `passkey`.

    The first needle lies where the passkey's plan of the same seed has its key; the rest of a
    question is drawn from a stream of its own, so that no question depends on which others are
    asked. The filler is the template's; the other strings are the task's. max_length, tests and
    errors are those of `passkey.plan`.
    """

    def fits(question: Question) -> bool:
        hidden: Hidden = task.hide(_depth(question), _rng(seed, question))
        least = hidden.haystack.least(tokenizer, template.filler, bos)
        return least + task.new_tokens <= question.length

    asked = cells.keep_fitting(cells.questions(max_length, seed, tests), fits, max_length)
    return NeedlePlan(task, template, tokenizer, max_length, seed, bos, tests, asked)


def _depth(question: Question) -> float:
    return question.position / question.length


def _rng(seed: int, question: Question) -> np.random.RandomState:
    tenth = round(question.depth * passkey_plan.DEPTHS)
    return np.random.RandomState([seed, question.length, tenth, question.test])


def run(
    generator: Generator,
    plan: NeedlePlan,
    log: SampleLog,
    *,
    window: int,
    progress: Progress = iter,
) -> Records:
    """The mean score of greedy answers, accuracy [length, depth], and real tokens [length].

    Rows of the log, by 'length/depth/test': score; text, the answer; expected, the strings it
    should contain; tokens of the prompt; length, depth, test. Questions that it has are not
    asked again. window: tokens up to which the model's context reaches, for the records'
    attributes.
    """
    options = Options(new_tokens=plan.task.new_tokens, stop_ids=(plan.tokenizer.eos_id,))

    def answer(chunk: Sequence[Question]) -> list[dict[str, Any]]:
        asked = [plan.ask(question) for question in chunk]
        answers = generator.generate([a.prompt for a in asked], options)
        texts = [plan.tokenizer.decode(ids) for ids in answers]
        return [
            {
                **question.place,
                'score': plan.task.score(text, a.expected),
                'text': text,
                'expected': list(a.expected),
                'tokens': len(a.prompt),
            }
            for question, a, text in zip(chunk, asked, texts, strict=True)
        ]

    cells.answer_missing(plan.questions, log, answer, progress)
    measures, coordinates = cells.tabulate(plan.questions, log, 'score')
    attributes = {
        'evaluation': 'needles',
        'task': plan.task.name,
        'max_length': plan.max_length,
        'plan_seed': plan.seed,
        'template': plan.template.name,
        'tests': plan.tests,
        'bos': plan.bos,
        'new_tokens': plan.task.new_tokens,
        'window': window,
    }
    return Records(attributes, measures, coordinates)
