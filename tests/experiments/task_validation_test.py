"""Validation of runs on synthetic tasks: the best step is kept, measured, and asked for."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import pytest
from ml_collections import ConfigDict

from experiments import execute
from experiments.bench import Bench
from experiments.build import build
from experiments.evaluations.exact_match import ExactMatchSpec
from experiments.plan import make_plan
from experiments.runs import RunSpec
from experiments.specs import identifier
from experiments.workspace import Workspace
from nope import records
from nope.checkpoints.errors import CheckpointError
from nope.data.tasks import WordTokenizer, words
from nope.identity import plain
from nope.interop.run_folder import read_run
from nope.training import metrics
from nope.training.config import Validation
from nope.training.validation import ACCURACY
from tests import tiny
from tests.experiments.task_configs import config, spec_of, with_run


def validated(**train: Any) -> ConfigDict:
    return config(train={'length': 20, 'validate_every': 2, 'steps': 4, 'warmup_steps': 1} | train)


def test_a_run_that_is_validated_is_another_one() -> None:
    run, plain_run = (spec_of(build(made)).run for made in (validated(), validated(**NEVER)))
    assert run.train.validation == Validation(2, 0.5)
    assert plain_run.train.validation is None and 'validation' not in str(plain(plain_run.train))
    assert identifier(run) != identifier(plain_run)
    assert spec_of(build(config())).run.train.validation is None


NEVER = {'validate_every': None}


@pytest.mark.parametrize(
    ('train', 'message'),
    [
        ({'validate_every': 0}, r'runs\.one\.train\.validate_every is 0; it must be at least 1'),
        ({'validate_every': 5}, r'runs\.one\.train\.validate_every is 5; accepted: up to the 4 s'),
        ({'validation_share': 0.0}, r'runs\.one\.train\.validation_share is 0\.0; accepted: above'),
    ],
)
def test_validation_that_cannot_be_is_refused(train: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(validated(**train))


def test_validation_of_text_and_beside_a_drop_is_refused() -> None:
    found = config(drop_at=0.5, model={'position': {'kind': 'rope'}})
    found.train.validate_every = 2
    with pytest.raises(
        ValueError, match=r'^train\.validate_every is 2; accepted: None with drop_at'
    ):
        build(found)
    found = with_run(text={})
    found.evals = {'text/': {'kind': 'positions', 'run': 'text'}}
    found.train.validate_every = 2
    with pytest.raises(ValueError, match=r'^train\.validate_every is 2; accepted: None for text'):
        build(found)


def small(found: ConfigDict) -> ConfigDict:
    """The config with one small layer and few examples."""
    sizes = {'train': 60, 'validation': 24, 'test': 12}
    found.runs.one.task = {'name': 'cmc', 'longest': 3, 'symbols': 3, **sizes}
    found.model.update({'layers': 1, 'width': 16, 'heads': 2, 'kv_heads': 2, 'mlp_width': 16})
    return found


@pytest.mark.slow
def test_a_finished_run_without_its_best_step_says_how_to_go_on(tmp_path: pathlib.Path) -> None:
    experiment = build(small(validated()))
    run = spec_of(experiment).run
    assert isinstance(run, RunSpec)
    workspace = Workspace(tmp_path)
    folder = workspace.folder(run)

    def bench() -> Bench:
        return Bench(workspace, experiment.compute, experiment.batch_tokens)

    execute.execute(bench(), [run])
    best = bench().best(run)
    assert best is not None and best.step == 2
    shutil.rmtree(folder / 'checkpoints' / '2')
    with pytest.raises(CheckpointError, match=r'of step 2 .*Without .*done\.json the same'):
        bench().variables(run)
    (folder / 'done.json').unlink()
    execute.execute(bench(), [run])
    assert bench().best(run) is None
    tiny.assert_same(bench().variables(run), bench().variables(run, 4))


@pytest.mark.slow
def test_the_best_step_is_what_is_measured(tmp_path: pathlib.Path) -> None:
    """By exact match, by who reads the run's folder, and named in the records, also of others."""
    made = small(validated(steps=60, validate_every=12, batch_size=16, learning_rate=0.03))
    made.evals['attended'] = {'kind': 'attended_distance', 'run': 'one'}
    experiment = build(made)
    spec, attended = experiment.evals['one/seed0'], experiment.evals['attended']
    assert isinstance(spec, ExactMatchSpec)
    assert isinstance(spec.run, RunSpec)
    bench = Bench(Workspace(tmp_path), experiment.compute, experiment.batch_tokens)
    execute.execute(bench, make_plan(bench.workspace, [spec, attended]).missing)
    folder = bench.workspace.folder(spec.run)
    scores = {r['step']: r[ACCURACY] for r in metrics.read(folder) if ACCURACY in r}
    assert list(scores) == [12, 24, 36, 48, 60]
    assert len(set(scores.values())) > 1
    best = max(scores, key=lambda step: scores[step])  # the first of equal ones
    assert bench.best(spec.run) == (best, scores[best])
    tiny.assert_same(bench.variables(spec.run), bench.variables(spec.run, best))
    tiny.assert_same(read_run(folder, bench.mesh).variables, bench.variables(spec.run, best))
    assert WordTokenizer.read(folder / words.FILE) == spec.task_data.load_tokenizer()
    for each in (spec, attended):
        facts = records.load(bench.workspace.folder(each)).attributes
        assert (facts['best_step'], facts['step']) == (best, best)
        assert facts['train_tokens'] == 320 * best
        assert facts['validation_accuracy'] == scores[best]
