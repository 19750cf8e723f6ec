"""Validation in training: the best step's checkpoint is kept, also by a run that was stopped."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from nope.checkpoints.best import Best
from nope.checkpoints.manager import Checkpoints
from nope.data import Batch
from nope.runtime.errors import FieldError
from nope.training import metrics
from nope.training.config import Compute, TrainConfig, Validation
from nope.training.optim import OptimizerConfig
from nope.training.reporting import TrainingDiverged
from nope.training.train import Interrupted, train
from nope.training.validation import ACCURACY, Selection
from nope.variables import Variables
from tests import tiny

MODEL = tiny.model(layers=1)
CONFIG = TrainConfig(
    (8,),
    batch_size=2,
    steps=8,
    optimizer=OptimizerConfig(learning_rate=1e-2, decay_steps=8),
    validation=Validation(every=2, share=1.0),
)
SCORES = {2: 0.5, 4: 0.7, 6: 0.7, 8: 0.25}  # a tie: the earlier one
COMPUTE = Compute(checkpoint_every=3, log_every=100, keep=1)


class Killed(Exception):
    pass


def run(folder: pathlib.Path, stop_after: int | None = None, dies_at: int | None = None) -> None:
    """dies_at: the step whose batch is never there."""
    asked, scores = iter(range(1, 100)), iter(SCORES.values())

    def batches(start: int) -> Iterator[Batch]:
        nonlocal scores
        scores = iter([score for step, score in SCORES.items() if step > start])
        for step in range(start + 1, CONFIG.steps + 1):
            if step == dies_at:
                raise Killed
            yield Batch.of_blocks(tiny.tokens(2, 9, seed=step))

    train(
        MODEL,
        CONFIG,
        COMPUTE,
        mesh=tiny.mesh(),
        initial=functools.partial(tiny.variables, MODEL),
        batches=batches,
        folder=folder,
        identity={'seed': 0},
        title='test',
        should_stop=lambda: next(asked) == stop_after,
        score=lambda variables: next(scores),
    )


def test_what_diverged_is_not_scored(tmp_path: pathlib.Path) -> None:
    """The error is the training's own, which names the remedy, and no scorer's."""
    optimizer = OptimizerConfig(learning_rate=1e30, decay_steps=8)
    scored: list[Variables] = []
    with pytest.raises(TrainingDiverged, match='at step 2'):
        train(
            MODEL,
            dataclasses.replace(CONFIG, optimizer=optimizer),
            COMPUTE,
            mesh=tiny.mesh(),
            initial=functools.partial(tiny.variables, MODEL),
            batches=lambda start: (Batch.of_blocks(tiny.tokens(2, 9, seed=s)) for s in range(8)),
            folder=tmp_path,
            identity={'seed': 0},
            title='test',
            should_stop=lambda: False,
            score=lambda variables: scored.append(variables) or 0.0,
        )
    assert not scored and (tmp_path / 'bad_steps.jsonl').exists()


def left(folder: pathlib.Path) -> tuple[list[int], Best | None, Variables, list[dict[str, Any]]]:
    """Steps with a checkpoint, the best, its variables, and the rows of the metrics."""
    with Checkpoints(folder / 'checkpoints', {'seed': 0}) as checkpoints:
        found = checkpoints.steps(), checkpoints.best(), checkpoints.read(tiny.variables(MODEL))
    rows = [
        {name: row[name] for name in ('step', 'loss', ACCURACY)} for row in metrics.read(folder)
    ]
    return *found, rows


@pytest.fixture(scope='module')
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp('whole')
    run(folder)
    return left(folder)


def test_the_best_step_is_kept_beside_the_last_and_scores_are_in_the_metrics(whole: Any) -> None:
    steps, best, _, rows = whole
    assert steps == [4, 8]
    assert best == Best(4, 0.7)
    assert {row['step']: row[ACCURACY] for row in rows} == SCORES


@pytest.mark.parametrize(
    ('stops', 'error'),
    [
        ({'stop_after': 5}, Interrupted),  # after the best step, before the tie
        ({'stop_after': 2}, Interrupted),  # at a step that is scored
        ({'dies_at': 6}, Killed),  # nothing is saved after the best step
        ({'dies_at': 4}, Killed),  # nor is that
    ],
    ids=['stopped', 'stopped where scored', 'killed after the best', 'killed before it'],
)
def test_a_run_that_was_stopped_chooses_the_same(
    stops: dict[str, int], error: type[Exception], whole: Any, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(error):
        run(tmp_path, **stops)
    run(tmp_path)
    *found, rows = left(tmp_path)
    *expected, expected_rows = whole
    assert found[:2] == expected[:2] and rows == expected_rows
    tiny.assert_same(found[2], expected[2])


def test_the_first_score_is_the_best_and_a_tie_changes_nothing() -> None:
    scores = iter([0.0, 0.0, 0.5, 0.5, 0.25])
    selection = Selection(Validation(10, 0.5), lambda variables: next(scores))
    assert selection.best is None and not selection.is_best(0)
    due = [step for step in range(1, 51) if selection.due(step)]
    assert due == [10, 20, 30, 40, 50]
    chosen = [(selection.look(step, {}), selection.is_best(step))[1] for step in due]
    assert chosen == [True, False, True, False, False]
    assert selection.best == Best(30, 0.5)
    assert not Selection(None, None).due(10)


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda: Validation(0, 0.5), 'every is 0; it must be at least 1'),
        (lambda: Validation(2, 0.0), r'share is 0\.0; accepted: above 0, up to 1'),
        (lambda: Validation(2, 1.5), r'share is 1\.5'),
        (
            lambda: TrainConfig((8,), 2, 8, CONFIG.optimizer, validation=Validation(9, 1.0)),
            'validation is 9; accepted: up to the 8 steps',
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        make()
