"""Evaluation of a model on tasks of lm_eval, with the metrics of these tasks."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)

RESAMPLES = 1000  # for standard errors that have no closed form


def evaluate(tasks: Mapping[str, Any], model: Any, limit: int | None = None) -> dict[str, Any]:
    """lm_eval's results: 'results' (task -> 'metric,filter' -> value), 'versions', 'n-samples' ...

    Besides them 'contexts', how many were read, and 'truncated', how many of these were longer than
    the window and lost their beginning, which is logged.

    tasks: as `nope.evals.harness.load` returns them. model: an `adapter`. limit: first documents of
    each task. ValueError for a limit below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f'limit is {limit}; it must be at least 1')
    from lm_eval.evaluator import evaluate as harness_evaluate

    # A pool of processes forked from one that runs JAX may hang.
    os.environ.setdefault('DISABLE_MULTIPROC', '1')
    results = harness_evaluate(
        lm=model,
        task_dict=tasks,
        limit=limit,
        bootstrap_iters=RESAMPLES,
        log_samples=False,
        apply_chat_template=model.chat is not None,
        fewshot_as_multiturn=model.chat is not None,  # as lm_eval's own command
    )
    if model.truncated:
        _log.warning(
            '%d of %d contexts are longer than the window of %d tokens and lost their beginning',
            *(model.truncated, model.contexts, model.max_length),
        )
    return {**results, 'contexts': model.contexts, 'truncated': model.truncated}
