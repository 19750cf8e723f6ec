"""HELMET's recall group as an evaluation: prompts in, greedy answers out, scores as `Records`."""

from __future__ import annotations

import numpy as np

from nope.evals import answers
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.helmet.reading import HelmetPlan
from nope.evals.helmet.tasks import TASKS
from nope.evals.samples import SampleLog
from nope.records import Records


def run(
    generator: Generator, plan: HelmetPlan, *, log: SampleLog, progress: Progress = iter
) -> Records:
    """Lets the model answer every sample that `log` has not, and scores all of the plan's.

    Measures: those of `answers.measures`, whose `average` is HELMET's Recall, and `truncated`, the
    contexts that lost their end. Errors as `answers.run` and `HelmetPlan`.
    """
    parts, cut = [], []
    for length, task in plan.parts:
        samples, truncated = plan.prompts(length, task)
        parts.append(
            answers.Part(task, length, TASKS[task].budget, samples, score=TASKS[task].score)
        )
        cut.append(truncated)
    answers.run(generator, plan.tokenizer, parts, log=log, bos=plan.bos, progress=progress)
    rows = {(p.length, p.task): [log[p.key(i)] for i in range(len(p.samples))] for p in parts}
    budgets = {task: asked.budget for task, asked in TASKS.items()}
    return Records(
        attributes={'evaluation': 'helmet', 'bos': plan.bos, 'limit': plan.limit},
        measures=answers.measures(rows, budgets, _percent, truncated=cut),
        coordinates={'length': np.array(plan.lengths), 'task': np.array(list(TASKS))},
    )


def _percent(scores: list[float]) -> float:
    return float(100 * np.mean(scores))
