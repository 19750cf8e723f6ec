"""Zero-shot commonsense tasks, arXiv 2404.12224, Table 1."""

from __future__ import annotations

import importlib.metadata
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nope.data import Tokenizer, prefix_of
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.harness.evaluate import evaluate
from nope.evals.harness.published import TABLE_1
from nope.evals.harness.tasks import find, load
from nope.evals.samples import SampleLog
from nope.records import Measure, Records

TASKS = tuple(TABLE_1)
METRICS = ('acc_norm', 'acc')  # the first that a task has is its score


def run(
    tasks: Sequence[str],
    generator: Generator,
    tokenizer: Tokenizer,
    *,
    window: int,
    bos: bool | None = None,
    beyond: bool = False,
    limit: int | None = None,
    include: pathlib.Path | None = None,
    data: pathlib.Path | None = None,
    metadata: Mapping[str, Any] | None = None,
    log: SampleLog | None = None,
    progress: Progress = iter,
) -> Records:
    """Measures, along `task`: score and acc in percent, samples.

    score is acc_norm where the task has it (log-probability over the characters of the choice),
    else acc, as for boolq and winogrande. Attribute `average`: the plain mean of the scores.

    tasks: names of tasks with either metric, groups and tags included; `TASKS` are the paper's.
    window, bos, beyond, log: see `nope.evals.harness.adapter`; the paper's harness added no BOS.
    include, data, metadata: see `nope.evals.harness.find`, which raises the errors before the model
    does any work. limit: first documents of each task, for trials.
    """
    loaded = check(tasks, tokenizer, bos=bos, include=include, data=data, metadata=metadata)
    results = evaluate(
        loaded,
        generator,
        tokenizer,
        window=window,
        bos=bos,
        beyond=beyond,
        limit=limit,
        log=log,
        progress=progress,
    )
    facts = {
        'bos': bool(prefix_of(tokenizer, bos)),
        'window': window,
        'limit': limit,
        'truncated': results['truncated'],
    }
    facts |= {'beyond': True} if beyond else {}
    return records(results, list(loaded['tasks']), **facts)


def check(
    tasks: Sequence[str],
    tokenizer: Tokenizer,
    *,
    bos: bool | None = None,
    include: pathlib.Path | None = None,
    data: pathlib.Path | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Reads the tasks' data, which it returns as `load` does. Raises what `run` would raise about
    them, their metrics and the tokenizer."""
    loaded = load(find(tasks, include=include, data=data, metadata=metadata))
    for name in without_score(loaded['tasks']):
        measured = ', '.join(loaded['tasks'][name].aggregation())
        raise ValueError(f'task {name} measures {measured}; a score is one of {METRICS}')
    prefix_of(tokenizer, bos)
    return loaded


def without_score(tasks: Mapping[str, Any]) -> list[str]:
    """Names of the tasks (lm_eval.api.task.Task) that measure no accuracy."""
    return [name for name, task in tasks.items() if not set(METRICS) & set(task.aggregation())]


def records(results: Mapping[str, Any], tasks: Sequence[str], **attributes: Any) -> Records:
    """Records of `tasks`, from the results of `evaluate`."""
    found: list[dict[str, float]] = []  # metric -> value of the first filter that has it
    for task in tasks:
        found.append({})
        for key, value in results['results'][task].items():
            metric, _, filtered = key.partition(',')
            if filtered:
                found[-1].setdefault(metric, value)
    metrics = [next(metric for metric in METRICS if metric in values) for values in found]
    score = np.array([100 * v[metric] for v, metric in zip(found, metrics, strict=True)])
    acc = np.array([100 * values.get('acc', np.nan) for values in found])
    samples = np.array([results['n-samples'][task]['effective'] for task in tasks])
    return Records(
        attributes={
            'evaluation': 'harness',
            'metrics': metrics,
            'average': float(score.mean()),
            'lm_eval': importlib.metadata.version('lm_eval'),
            **attributes,
        },
        measures={
            'score': Measure(score, ('task',), 'percent'),
            'acc': Measure(acc, ('task',), 'percent'),
            'samples': Measure(samples, ('task',), ''),
        },
        coordinates={'task': np.array(tasks)},
    )
