"""RULER as an evaluation: prompts in, greedy answers out, scores of tasks as `Records`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from nope.data.chat import Chat
from nope.evals import answers
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.ruler import metrics
from nope.evals.ruler.prompts import RulerPlan
from nope.evals.ruler.tasks import TASKS
from nope.evals.samples import SampleLog
from nope.records import Records

PASSED = 85.6  # a length that RULER calls effective
BASE_SHARE = 0.85  # of the average at the shortest length (NoLiMa, arXiv 2502.05167)


def run(
    generator: Generator,
    plan: RulerPlan,
    *,
    log: SampleLog,
    bos: bool | None,
    chat: Chat | None = None,
    progress: Progress = iter,
) -> Records:
    """Lets the model answer every sample that `log` has not, and scores all of the plan's.

    bos: as `nope.data.prefix` has it; lengths count neither the prefix nor the turns of a chat.
    Answers end at a token of the tokenizer's `stop_ids`. They are logged as by `answers.ask`, each
    under 'task/length/index' with its prediction, its score in 0 .. 1, what it is to contain, and
    the tokens of its prompt.

    Measures: those of `answers.measures`, and `nulls`, the number of empty answers. Attributes:
    `effective_length` is the last length with every average up to it above 85.6, or 0.
    `effective_length_of_base` asks for 85 % of the average at the shortest length, and is 0 if that
    is 0.

    ValueError, before anything is generated of a part, for prompts that the plan cannot make, and
    for a log of other samples.
    """
    for length, task in plan.parts:
        asked = TASKS[task]
        part = answers.Part(
            *(task, length, asked.budget, plan.prompts(length, task)),
            score=functools.partial(_score, task),
            cleaned=metrics.cleaned,
            opening=asked.opening,
        )
        answers.run(
            generator,
            plan.tokenizer,
            [part],  # one at a time: a part may have 250 MB
            log=log,
            bos=bos,
            chat=chat,
            progress=progress,
        )
    return _records(plan, log, bos)


def _score(task: str, prediction: str, sample: answers.Sample) -> float:
    return metrics.METRICS[TASKS[task].metric](prediction, sample.answers)


def _records(plan: RulerPlan, log: SampleLog, bos: bool | None) -> Records:
    rows = {
        (length, task): [log[answers.key(task, length, i)] for i in range(plan.samples)]
        for length, task in plan.parts
    }
    budgets = {task: TASKS[task].budget for task in plan.tasks}
    nulls = [sum(not row['prediction'] for row in part) for part in rows.values()]
    measures = answers.measures(rows, budgets, metrics.mean, nulls=nulls)
    average = measures['average'].values
    base = average[int(np.argmin(plan.lengths))]
    return Records(
        attributes={
            'evaluation': 'ruler',
            'samples': plan.samples,
            'plan_seed': plan.seed,
            'bos': bos,
            'budgets': budgets,
            'words': plan.vocabulary().name if plan.needs_words else None,
            'effective_length': effective(plan.lengths, average.tolist(), PASSED),
            # At least that share, where `effective` asks for more: the next number is passed.
            'effective_length_of_base': effective(
                plan.lengths, average.tolist(), np.nextafter(BASE_SHARE * base, -np.inf)
            )
            if base
            else 0,
        },
        measures=measures,
        coordinates={'length': np.array(plan.lengths), 'task': np.array(plan.tasks)},
    )


def effective(lengths: Sequence[int], averages: Sequence[float], passed: float) -> int:
    """The longest length up to which every average is above `passed`; 0 where the first is not."""
    found = 0
    for length, average in sorted(zip(lengths, averages, strict=True)):
        if average <= passed:
            break
        found = length
    return found
