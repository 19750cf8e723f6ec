"""A lab's runs: where their checkpoints go, and that one command alone writes them."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable

import pytest

from experiments.build import Experiment, build
from experiments.lab import Lab
from experiments.spec import RunSpec
from experiments.workspace import Workspace
from nope.checkpoints import folders
from nope.checkpoints.lease import Lease
from nope.checkpoints.manager import CheckpointError
from nope.interop.run_folder import read_run
from nope.runtime import files
from nope.sharding import MeshConfig
from nope.training.train import Interrupted
from tests import tiny
from tests.experiments import build_test, run_test


@pytest.fixture
def experiment(tmp_path: pathlib.Path) -> Experiment:
    """A figure of a few steps."""
    text = tmp_path / 'text'
    text.mkdir()
    run_test.write_texts(text)
    config = build_test.config_of('fig4')
    for option in run_test.TINY:
        name, value = option.removeprefix('--config.').format(text=text).split('=', 1)
        config.update_from_flattened_dict({name: type_of(value)})
    config.train.steps, config.train.warmup_steps = 4, 1
    return build(config)


def type_of(value: str) -> int | float | str:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(value)
    return value


def lab_of(
    experiment: Experiment,
    workdir: pathlib.Path,
    should_stop: Callable[[], bool] = lambda: False,
    **compute: str | int | MeshConfig,
) -> tuple[Lab, RunSpec]:
    lab = Lab(
        Workspace(workdir),
        dataclasses.replace(experiment.compute, **compute),
        experiment.batch_tokens,
        should_stop,
    )
    runs = {run for e in experiment.evals.values() for run in build_test.runs_below(e)}
    return lab, next(run for run in runs if run.init is None)


def test_checkpoints_go_where_they_were_asked_to_and_are_found(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    """A run that was stopped goes on there, and nowhere else."""
    away = tmp_path / 'away'
    lab, run = lab_of(experiment, tmp_path / 'work', lambda: True, checkpoints=str(away))
    with pytest.raises(Interrupted):
        lab.ensure_run(run)
    with pytest.raises(ValueError, match=r'compute\.checkpoints.* there are some in .*away'):
        lab_of(experiment, tmp_path / 'work')[0].ensure_run(run)
    folder = lab_of(experiment, tmp_path / 'work', checkpoints=str(away))[0].ensure_run(run)
    assert not (folder / 'checkpoints').exists()
    assert folders.of_run(folder).parent.parent == folders.in_full(away)
    there, _ = lab_of(experiment, tmp_path / 'work')
    tiny.assert_same(read_run(folder, lab.mesh).variables, there.variables(run))


def test_a_mesh_that_only_an_evaluation_needs_is_looked_at_before(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    lab, _ = lab_of(experiment, tmp_path / 'work', later_mesh=MeshConfig(fsdp=3))
    with pytest.raises(ValueError, match=r'compute\.later_mesh .*fsdp=3.* takes 6 devices'):
        lab.check_evaluation(next(iter(experiment.evals.values())))


def test_a_finished_runs_damaged_checkpoint_can_be_made_again(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    lab, run = lab_of(experiment, tmp_path / 'work', checkpoint_every=2)
    folder = lab.ensure_run(run)
    whole = lab.variables(run)
    newest = max((folder / 'checkpoints').iterdir(), key=lambda path: int(path.name))
    document = newest / 'data' / 'metadata'
    document.write_text(document.read_text().replace('4', '5'))
    again, _ = lab_of(experiment, tmp_path / 'work')
    with pytest.raises(CheckpointError, match=r'documents data differ.*Without .*done\.json'):
        again.variables(run)
    (folder / 'done.json').unlink()
    tiny.assert_same(again.variables(run), whole)
    assert (folder / 'damaged' / newest.name).is_dir()


def test_a_run_is_leased_where_there_are_no_locks(
    experiment: Experiment, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look() -> bool:
        seen.extend(tmp_path.glob('runs/*/owner.json'))
        return False

    monkeypatch.setattr(files, '_lock', lambda *_: False)
    monkeypatch.setitem(Lease.__init__.__kwdefaults__, 'settling', 0.0)
    lab, run = lab_of(experiment, tmp_path, look)
    lab.ensure_run(run)
    assert seen
    assert not list(tmp_path.glob('runs/*/owner.json'))
