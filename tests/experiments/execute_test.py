"""Pieces of a plan as they are made: in order, once, where they belong, by one command alone."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import pathlib
import threading
from collections.abc import Callable

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from experiments import execute
from experiments.bench import Bench
from experiments.build import Experiment, build
from experiments.plan import make_plan
from experiments.runs import RunSpec
from experiments.specs import Spec
from experiments.workspace import Workspace
from nope.checkpoints import folders
from nope.checkpoints.errors import CheckpointError
from nope.checkpoints.lease import Lease
from nope.interop.run_folder import read_run
from nope.positions import DynamicNTK, RoPE
from nope.runtime import files
from nope.sharding import MeshConfig
from nope.training.train import Interrupted
from nope.variables import lam_of
from tests import tiny
from tests.experiments import build_test, run_test


@pytest.fixture
def experiment(config: ConfigDict) -> Experiment:
    return build(config)


@pytest.fixture
def config(tmp_path: pathlib.Path) -> ConfigDict:
    """A figure of a few steps."""
    return run_test.shrink(build_test.config_of('fig4'), tmp_path)


def bench_of(
    experiment: Experiment,
    workdir: pathlib.Path,
    should_stop: Callable[[], bool] = lambda: False,
    **compute: str | int | MeshConfig,
) -> Bench:
    return Bench(
        Workspace(workdir),
        dataclasses.replace(experiment.compute, **compute),
        experiment.batch_tokens,
        should_stop,
    )


def base_of(experiment: Experiment) -> RunSpec:
    return next(run for run in runs_of(experiment) if run.init is None)


def runs_of(experiment: Experiment) -> set[RunSpec]:
    return {run for e in experiment.evals.values() for run in build_test.runs_below(e)}


def train(bench: Bench, run: RunSpec) -> pathlib.Path:
    execute.execute(bench, make_plan(bench.workspace, [run]).missing)
    return bench.workspace.folder(run)


def test_a_plan_has_every_piece_after_what_it_needs(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    workspace = Workspace(tmp_path / 'work')
    plan = make_plan(workspace, list(experiment.evals.values()))
    assert plan.finished == 0
    assert set(plan.missing) >= {*experiment.evals.values(), base_of(experiment)}
    for number, piece in enumerate(plan.missing):
        assert {part for part in piece.needs if part.room} <= set(plan.missing[:number])


def test_what_only_finished_pieces_need_is_not_made(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    workspace = Workspace(tmp_path / 'work')
    wanted = list(experiment.evals.values())
    for piece in wanted:
        folder = workspace.folder(piece)
        folder.mkdir(parents=True)
        (folder / piece.finished).write_text('{}')
    plan = make_plan(workspace, wanted)
    assert (plan.missing, plan.finished) == ((), len(wanted))


@dataclasses.dataclass(frozen=True)
class Piece(Spec):
    """Something that is made by writing a file."""

    name: str
    parts: tuple[Piece, ...] = ()
    room = 'pieces'
    finished = 'done.json'

    def slug(self) -> str:
        return self.name


def test_commands_share_the_pieces(
    experiment: Experiment, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes the next free one, and none is made twice or before what it needs."""
    leaves = tuple(Piece(name) for name in 'abcdef')
    pieces = (*leaves, Piece('top', leaves))
    made: list[tuple[str, int]] = []
    first_round = threading.Barrier(3, timeout=60)

    def make(bench: Bench, spec: Piece) -> None:
        if spec in leaves[:3]:
            first_round.wait()  # three commands are at work at the same time
        folder = bench.workspace.folder(spec)
        assert all((folder.parent / part.name / 'done.json').exists() for part in spec.parts)
        made.append((spec.name, threading.get_ident()))
        files.write_json(folder / 'done.json', {})

    monkeypatch.setattr(execute, '_make', make)
    monkeypatch.setattr(execute, 'LOOK_SECONDS', 0.01)
    benches = [bench_of(experiment, tmp_path) for _ in range(3)]
    with concurrent.futures.ThreadPoolExecutor(3) as commands:
        for ended in [commands.submit(execute.execute, bench, pieces) for bench in benches]:
            ended.result(60)
    assert sorted(name for name, _ in made) == [*'abcdef', 'top']
    assert len({thread for name, thread in made if name in 'abc'}) == 3


def test_a_command_waits_for_what_another_one_makes(
    experiment: Experiment, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = base_of(experiment)
    bench = bench_of(experiment, tmp_path)
    folder = bench.workspace.folder(run)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            files.write_json(folder / run.finished, {})

    monkeypatch.setattr(execute.time, 'sleep', sleep)
    with files.exclusive(run.lock(folder)):
        execute.execute(bench, [run])
    assert len(slept) == 3
    assert not (folder / 'checkpoints').exists()


def test_a_command_that_was_stopped_waits_for_nothing_and_begins_nothing(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    run = base_of(experiment)
    bench = bench_of(experiment, tmp_path, lambda: True)
    with files.exclusive(run.lock(bench.workspace.folder(run))), pytest.raises(Interrupted):
        execute.execute(bench, [run])
    with pytest.raises(Interrupted, match='what was finished before it is kept'):
        execute.execute(bench, [run])
    assert not (bench.workspace.folder(run) / 'checkpoints').exists()


@pytest.mark.slow
def test_checkpoints_go_where_they_were_asked_to_and_are_found(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    """A run that was stopped goes on there, and nowhere else."""
    away, run = tmp_path / 'away', base_of(experiment)
    answers = iter([False])  # as the run is begun, and then at its first step
    with pytest.raises(Interrupted):
        train(
            bench_of(
                experiment, tmp_path / 'work', lambda: next(answers, True), checkpoints=str(away)
            ),
            run,
        )
    with pytest.raises(ValueError, match=r'compute\.checkpoints.* there are some in .*away'):
        train(bench_of(experiment, tmp_path / 'work'), run)
    folder = train(bench_of(experiment, tmp_path / 'work', checkpoints=str(away)), run)
    assert not (folder / 'checkpoints').exists()
    assert folders.of_run(folder).parent.parent == folders.in_full(away)
    there = bench_of(experiment, tmp_path / 'work')
    tiny.assert_same(read_run(folder, there.mesh).variables, there.variables(run))


def test_a_search_shares_the_weights_of_the_run_it_starts_from(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    """In memory, in its checkpoints and for the tools; without that run it cannot be read."""
    bench, base = bench_of(experiment, tmp_path / 'work'), base_of(experiment)
    search = next(run for run in runs_of(experiment) if run.searches)
    folder = train(bench, search)
    found, began = bench.variables(search), bench.variables(base)
    shared = zip(jax.tree.leaves(found['params']), jax.tree.leaves(began['params']), strict=True)
    assert all(a is b for a, b in shared)
    assert np.any(np.asarray(lam_of(found)) != lam_of(began))
    for step in (folder / 'checkpoints').iterdir():
        sums = json.loads((step / 'checksums' / 'metadata').read_text())
        assert {path.split("'")[1] for path in sums['arrays']} == {'lam', 'opt_state'}
    tiny.assert_same(read_run(folder, bench.mesh).variables, found)

    home = bench.workspace.folder(base)
    away = home.rename(tmp_path / 'away')
    alone = bench_of(experiment, tmp_path / 'work')
    message = (
        rf'has no params: .* base model, .*/{base.slug()}: put it back, or remove .*/done\.json'
    )
    with pytest.raises(CheckpointError, match=message):
        alone.variables(search)
    away.rename(home)
    tiny.assert_same(alone.variables(search), found)


def test_a_mesh_that_only_an_evaluation_needs_is_looked_at_before(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    bench = bench_of(experiment, tmp_path / 'work', later_mesh=MeshConfig(fsdp=3))
    with pytest.raises(ValueError, match=r'compute\.later_mesh .*fsdp=3.* takes 6 devices'):
        execute.check(bench, list(experiment.evals.values()))


def test_what_a_run_cannot_read_is_named_as_it_was_typed(
    config: ConfigDict, tmp_path: pathlib.Path
) -> None:
    config.runs.headscale_4x.search.times = (4000.0,)
    bench = bench_of(build(config), tmp_path / 'work')
    search = build(config).evals['headscale'].run
    message = r'^runs\.headscale_4x\.search\.times makes sequences of 64000 tokens; every document'
    with pytest.raises(ValueError, match=message):
        execute.check(bench, [search])
    config.runs.nope = {
        'model': {'attention': 'library'},
        'data': {'documents': 'apart'},
        'train': {'length': 16},
    }
    run = base_of(build(config))
    message = r"^runs\.nope\.data\.documents gives .* runs\.nope\.model\.attention='library' cannot"
    with pytest.raises(ValueError, match=message):
        execute.check(bench, [run])
    config.runs.nope.model = {}
    run = base_of(build(config))
    model = dataclasses.replace(run.model, position=RoPE(scaling=DynamicNTK(1.0, 16)))
    message = r"^runs\.nope\.data\.documents is 'apart'; positions of the kind RoPE, dyn"
    with pytest.raises(ValueError, match=message):
        execute.check(bench, [dataclasses.replace(run, model=model)])
    config.runs.nope.train.length = 70_000
    message = r'^runs\.nope\.train\.length makes sequences of 70000 tokens; every document'
    with pytest.raises(ValueError, match=message):
        execute.check(bench, [base_of(build(config))])


def test_a_finished_runs_damaged_checkpoint_can_be_made_again(
    experiment: Experiment, tmp_path: pathlib.Path
) -> None:
    run = base_of(experiment)
    bench = bench_of(experiment, tmp_path / 'work', checkpoint_every=2)
    folder = train(bench, run)
    whole = bench.variables(run)
    newest = max((folder / 'checkpoints').iterdir(), key=lambda path: int(path.name))
    document = newest / 'data' / 'metadata'
    document.write_text(document.read_text().replace('4', '5'))
    again = bench_of(experiment, tmp_path / 'work')
    with pytest.raises(CheckpointError, match=r'documents data differ.*Without .*done\.json'):
        again.variables(run)
    (folder / 'done.json').unlink()
    train(again, run)
    tiny.assert_same(again.variables(run), whole)
    assert (folder / 'damaged' / newest.name).is_dir()


def test_without_locks_a_run_is_leased_and_taken_over_from_a_silent_holder(
    experiment: Experiment, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nobody waits for it: each look remembers the ones before."""
    holders: set[str] = set()

    def look() -> bool:
        owners = tmp_path.glob('runs/*/owner.json')
        holders.update(json.loads(path.read_text())['token'] for path in owners)
        return False

    run, bench = base_of(experiment), bench_of(experiment, tmp_path, look)
    folder = bench.workspace.folder(run)
    folder.mkdir(parents=True)
    (folder / 'owner.json').write_text('{"token": "x", "pid": 1, "host": "elsewhere"}')
    monkeypatch.setattr(files, '_lock', lambda *_: False)
    for name, seconds in (('beat', 0.2), ('settling', 0.1), ('silence', 0.2)):
        monkeypatch.setitem(Lease.__init__.__kwdefaults__, name, seconds)
    monkeypatch.setattr(execute, 'LOOK_SECONDS', 0.05)
    train(bench, run)
    assert (folder / 'done.json').exists() and not (folder / 'owner.json').exists()
    assert 'x' in holders and len(holders) == 2
