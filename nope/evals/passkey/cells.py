"""Grid of lengths by depths: its questions, their batches and their mean scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nope.evals import bootstrap
from nope.evals.forward import Progress
from nope.evals.passkey import keys
from nope.evals.passkey.keys import PasskeyQuestion
from nope.evals.samples import SampleLog
from nope.records import RESAMPLE, RESAMPLED, Measure

# Nominal tokens that are asked, at most, between two writes to the log.
CHUNK_TOKENS = 2**20

Row = Mapping[str, Any]


def questions(
    max_length: int, seed: int, tests: int, lengths: Sequence[int] = ()
) -> tuple[PasskeyQuestion, ...]:
    """The first `tests` questions of each cell of `keys.plan`, longest first.

    lengths: chosen ones, in tokens, in place of the plan's 16 (`keys.plan_of_lengths`).
    The plan is drawn in full whatever `tests` is, so that fewer tests are a part of more.
    tests: 1 to 10. ValueError as in the plan.
    """
    planned = keys.plan_of_lengths(lengths, seed) if lengths else keys.plan(max_length, seed)
    return tuple(question for question in planned if question.test < tests)


def keep_fitting(
    asked: Sequence[PasskeyQuestion], fits: Callable[[PasskeyQuestion], bool], max_length: int
) -> tuple[PasskeyQuestion, ...]:
    """The questions of those lengths at which every question fits, in the same order.

    ValueError, naming max_length, where there is no such length.
    """
    short = {question.length for question in asked if not fits(question)}
    kept = tuple(question for question in asked if question.length not in short)
    if not kept:
        raise ValueError(
            f'max_length is {max_length}; no length up to it has room for a prompt and its answer'
        )
    return kept


def answer_missing(
    asked: Sequence[PasskeyQuestion],
    log: SampleLog,
    answer: Callable[[Sequence[PasskeyQuestion]], Sequence[Row]],
    progress: Progress,
) -> None:
    """Has `answer` make the rows that the log lacks, of one length at a time, and logs them."""
    missing = [question for question in asked if question.name not in log]
    chunks: list[list[PasskeyQuestion]] = []
    for question in missing:
        fitting = max(CHUNK_TOKENS // question.length, 1)
        if chunks and chunks[-1][0].length == question.length and len(chunks[-1]) < fitting:
            chunks[-1].append(question)
        else:
            chunks.append([question])
    for chunk in progress(chunks):
        rows = answer(chunk)
        log.append({question.name: row for question, row in zip(chunk, rows, strict=True)})


def tabulate(
    asked: Sequence[PasskeyQuestion], log: SampleLog
) -> tuple[dict[str, Measure], dict[str, np.ndarray]]:
    """Measures and coordinates of the records that the log's rows make.

    accuracy [length, depth]: the share of a cell's right answers; tokens [length]: the mean of the
    prompts' real tokens; accuracy_resampled [resample, length, depth]: of every resample of the
    prompts of each cell, where it has several. Lengths ascend.
    """
    lengths = sorted({question.length for question in asked})
    depths = sorted({question.depth for question in asked})
    cells: dict[tuple[int, float], list[float]] = {}
    tokens: dict[int, list[int]] = {}
    for question in asked:
        row = log[question.name]
        cells.setdefault((question.length, question.depth), []).append(float(row['correct']))
        tokens.setdefault(question.length, []).append(row['tokens'])
    scores = np.array([[cells[length, depth] for depth in depths] for length in lengths])
    axes = ('length', 'depth')
    measures = {
        'accuracy': Measure(scores.mean(axis=2), axes, ''),
        'tokens': Measure(np.array([np.mean(tokens[n]) for n in lengths]), ('length',), ''),
    }
    resampled = bootstrap.of_cells(scores.reshape(-1, scores.shape[2]))
    if resampled is not None:
        values = resampled.reshape(-1, *scores.shape[:2])
        measures['accuracy' + RESAMPLED] = Measure(values, (RESAMPLE, *axes), '')
    return measures, {'length': np.array(lengths), 'depth': np.array(depths)}
