"""HELMET's recall group as an evaluation: prompts in, greedy answers out, scores as `Records`."""

from __future__ import annotations

from typing import Any

import numpy as np

from nope.evals import answers
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.helmet.reading import HelmetPlan
from nope.evals.helmet.tasks import TASKS
from nope.evals.samples import SampleLog
from nope.records import Measure, Records


def run(
    generator: Generator,
    plan: HelmetPlan,
    *,
    log: SampleLog,
    batch_size: int = 32,
    progress: Progress = iter,
) -> Records:
    """Lets the model answer every sample that `log` has not, and scores all of the plan's.

    Measures: `score` [length, task] 0 .. 100; `samples`; `truncated`, the contexts that lost their
    end. `tokens` is the mean of prompt and budget without BOS. `average` [length], the plain mean
    of `score` over tasks, is HELMET's Recall. Errors as `answers.run` and `HelmetPlan`.
    """
    parts, cut = [], []
    for length, task in plan.parts:
        samples, truncated = plan.prompts(length, task)
        parts.append(
            answers.Part(task, length, TASKS[task].budget, samples, score=TASKS[task].score)
        )
        cut.append(truncated)
    answers.run(
        generator,
        plan.tokenizer,
        parts,
        log=log,
        bos=plan.bos,
        chat=plan.chat,
        batch_size=batch_size,
        progress=progress,
    )
    rows = [[log[part.key(index)] for index in range(len(part.samples))] for part in parts]

    def table(values: list[Any]) -> np.ndarray:
        return np.array(values).reshape(len(plan.lengths), len(TASKS))

    axes = ('length', 'task')
    score = table([100 * np.mean([row['score'] for row in of_part]) for of_part in rows])
    tokens = [
        np.mean([row['tokens'] for row in of_part]) + part.budget
        for part, of_part in zip(parts, rows, strict=True)
    ]
    return Records(
        attributes={'evaluation': 'helmet', 'bos': plan.bos, 'limit': plan.limit},
        measures={
            'score': Measure(score, axes, '0..100'),
            'samples': Measure(table([len(of_part) for of_part in rows]), axes, ''),
            'truncated': Measure(table(cut), axes, ''),
            'tokens': Measure(table(tokens), axes, ''),
            'average': Measure(score.mean(axis=1), ('length',), '0..100'),
        },
        coordinates={'length': np.array(plan.lengths), 'task': np.array(list(TASKS))},
    )
