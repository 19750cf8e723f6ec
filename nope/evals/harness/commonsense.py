"""Zero-shot commonsense tasks, arXiv 2404.12224, Table 1."""

from __future__ import annotations

import importlib.metadata
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nope.data import Tokenizer, prefix_of
from nope.evals.harness.evaluate import evaluate
from nope.evals.harness.published import TABLE_1
from nope.evals.harness.tasks import find, load
from nope.records import Measure, Records

TASKS = tuple(TABLE_1)
METRICS = ('acc_norm', 'acc')  # the first that a task has is its score


def run(loaded: Mapping[str, Any], model: Any, limit: int | None = None) -> Records:
    """Measures, along `task`: score and acc in percent, samples.

    score is acc_norm where the task has it (log-probability over the characters of the choice),
    else acc, as for boolq and winogrande. Attributes: `average`, the plain mean of the scores;
    `groups`, of each group of lm_eval its own mean, by questions where it says so, and its samples.

    loaded: what `check` returns. model: a `nope.evals.harness.adapter`; the paper's harness added
    no BOS. limit: first documents of each task, for trials.
    """
    results = evaluate(loaded, model, limit)
    facts = {
        'bos': bool(model.prefix),
        'window': model.max_length,
        'limit': limit,
        'truncated': results['truncated'],
    }
    facts |= {'beyond': True} if model.beyond else {}
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
    """Reads the tasks' data, which it returns as `load` does.

    tasks: names of tasks with either metric, groups and tags included; `TASKS` are the paper's.
    include, data, metadata: as `find`, whose errors it has. ValueError too for a task without such
    a metric, and for `bos` with a tokenizer that has none.
    """
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
    found = [_by_metric(results['results'][task]) for task in tasks]
    metrics = [next(metric for metric in METRICS if metric in values) for values in found]
    score = np.array([100 * v[metric] for v, metric in zip(found, metrics, strict=True)])
    acc = np.array([100 * values.get('acc', np.nan) for values in found])
    samples = np.array([results['n-samples'][task]['effective'] for task in tasks])
    groups = {}
    for name, values in results.get('groups', {}).items():
        means = _by_metric(values)
        metric = next((metric for metric in METRICS if metric in means), None)
        if metric is not None:
            groups[name] = {'score': 100 * means[metric], 'samples': values['sample_len']}
    return Records(
        attributes={
            'evaluation': 'harness',
            'metrics': metrics,
            'average': float(score.mean()),
            **({'groups': groups} if groups else {}),
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


def _by_metric(values: Mapping[str, Any]) -> dict[str, float]:
    """Values of lm_eval's 'metric,filter', by metric: of the first filter that has it."""
    found: dict[str, float] = {}
    for key, value in values.items():
        metric, _, filtered = key.partition(',')
        if filtered and isinstance(value, float | int):
            found.setdefault(metric, value)
    return found
