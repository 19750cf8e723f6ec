"""Evaluation of a model on tasks of lm_eval, with the metrics of these tasks."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from nope.data import Tokenizer
from nope.data.chat import Chat
from nope.evals.forward import Progress
from nope.evals.generation import Generator
from nope.evals.harness.model import adapter
from nope.evals.samples import SampleLog

_log = logging.getLogger(__name__)

RESAMPLES = 1000  # for standard errors that have no closed form


def evaluate(
    tasks: Mapping[str, Any],
    generator: Generator,
    tokenizer: Tokenizer,
    *,
    window: int,
    bos: bool | None = None,
    beyond: bool = False,
    limit: int | None = None,
    seed: int = 0,
    chat: Chat | None = None,
    log: SampleLog | None = None,
    progress: Progress = iter,
) -> dict[str, Any]:
    """lm_eval's results: 'results' (task -> 'metric,filter' -> value), 'versions', 'n-samples' ...

    Besides them 'contexts', how many were read, and 'truncated', how many of these were longer than
    the window and lost their beginning, which is logged.

    tasks: as `nope.evals.harness.load` returns them. limit: first documents of each task.
    window, bos, beyond, seed, chat, log: see `adapter`. ValueError for a limit below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f'limit is {limit}; it must be at least 1')
    model = adapter(
        generator,
        tokenizer,
        window=window,
        bos=bos,
        beyond=beyond,
        seed=seed,
        chat=chat,
        log=log,
        progress=progress,
    )
    from lm_eval.evaluator import evaluate as harness_evaluate

    # A pool of processes forked from one that runs JAX may hang.
    os.environ.setdefault('DISABLE_MULTIPROC', '1')
    results = harness_evaluate(
        lm=model,
        task_dict=tasks,
        limit=limit,
        bootstrap_iters=RESAMPLES,
        log_samples=False,
        apply_chat_template=chat is not None,
        fewshot_as_multiturn=chat is not None,  # as lm_eval's own command
    )
    if model.truncated:
        _log.warning(
            '%d of %d contexts are longer than the window of %d tokens and lost their beginning',
            *(model.truncated, model.contexts, window),
        )
    return {**results, 'contexts': model.contexts, 'truncated': model.truncated}
