"""Least work of pieces: the arithmetic of MFU, counted over whole runs and evaluations."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import pytest

from configs.encodings import drope
from configs.first_paper import fig1, fig4, fig6, table2
from configs.second_paper import b_mrr
from configs.temperatures import fig_dynamic
from experiments import command, costs
from experiments.build import build
from experiments.evaluations import EvalSpec
from experiments.plan import make_plan
from experiments.runs import RunSpec
from experiments.workspace import Workspace
from nope.evals.passkey import cells
from nope.model import counts
from nope.runtime.files import write_json
from nope.runtime.hardware import Target
from nope.training.config import TrainConfig

DEVICE = Target('device', 1e12, 4, 'of products')


def evaluations(config, kind: str) -> list[EvalSpec]:
    return [spec for spec in build(config).evals.values() if spec.kind == kind]


def run_of(config, name: str) -> RunSpec:
    run = build(config).evals[name].run
    assert isinstance(run, RunSpec)
    return run


@pytest.mark.parametrize(('config', 'name', 'arrays'), [(fig1, 'nope', 12), (fig4, 'headscale', 4)])
def test_a_training_costs_its_steps(config: Any, name: str, arrays: int) -> None:
    """A search has no gradients of weights, and keeps no moments of them: bytes per parameter."""
    run = run_of(config.get_config('quick'), name)
    tokens = run.train.steps * run.train.batch_size * run.train.block
    per_token = counts.training_flops(run.model, run.train.block, frozen=name == 'headscale')
    found = costs.cost(run)
    assert found.flops == pytest.approx(tokens * per_token)
    assert found.state == arrays * counts.parameters(run.model)


def test_lengths_in_turn_are_counted_as_they_come() -> None:
    run = run_of(fig1.get_config('quick'), 'nope')
    train = TrainConfig((16, 64), 8, 5, run.train.optimizer)
    per_token = {n: counts.training_flops(run.model, n) for n in (16, 64)}
    found = costs.training_flops(dataclasses.replace(run, train=train))
    assert found == pytest.approx(8 * (3 * 16 * per_token[16] + 2 * 64 * per_token[64]))


def test_a_dropped_encoding_costs_what_it_did_while_it_was_there() -> None:
    experiment = build(drope.get_config('quick'))
    dropped = next(
        run
        for spec in experiment.evals.values()
        if isinstance(run := spec.run, RunSpec) and run.earlier is not None
    )
    whole = dataclasses.replace(dropped, earlier=None)
    assert costs.training_flops(dropped) == pytest.approx(costs.training_flops(whole))


def test_an_evaluation_costs_what_it_reads_forward() -> None:
    (spec, *_) = evaluations(fig1.get_config('quick'), 'positions')
    per_token = counts.training_flops(spec.model, 256) / 3
    found = costs.cost(spec)
    assert found.flops == pytest.approx(1024 * 256 * per_token)
    assert found.state == 4 * counts.parameters(spec.model)
    (grid,) = evaluations(fig1.get_config('quick'), 'multiplier_grid')
    assert grid.reads == {256: 256 * len(grid.grid.multipliers())}
    (lengths, *_) = evaluations(fig_dynamic.get_config('quick'), 'lengths')
    assert lengths.reads == dict.fromkeys(lengths.lengths, 1024)
    (windows, *_) = evaluations(table2.get_config('quick'), 'perplexity')
    assert windows.reads == dict.fromkeys(windows.lengths, 8192 // windows.stride)


def test_a_passkey_evaluation_reads_every_cell_of_its_plan() -> None:
    (spec, *_) = evaluations(fig6.get_config('quick'), 'passkey')
    asked = cells.questions(spec.max_length, spec.plan_seed, spec.tests)
    assert sum(spec.reads.values()) == len(asked)
    assert set(spec.reads) == {question.length for question in asked}


def test_what_only_files_tell_is_said_and_not_counted(tmp_path: pathlib.Path) -> None:
    config = b_mrr.get_config('paper')
    config.task.tokenizer = 'words'
    names = build(config).evals
    missing = make_plan(Workspace(tmp_path), list(names.values())).missing
    lines = costs.table(missing, DEVICE, names).splitlines()
    assert len(lines) == 1 + 510 + 2
    assert '255 of them, whose examples are counted when they are read, left out' in lines[-2]
    flops = sum(costs.training_flops(spec) for spec in missing if isinstance(spec, RunSpec))
    hours = flops / 1e12 / 3600
    assert f'at least {hours:,.4g} device hours, {hours / 4:,.4g} hours of 4 on device' in lines[-1]


def test_a_plan_is_shown_and_nothing_is_written(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its handler is the process's, and would outlive the stream of this test.
    monkeypatch.setattr(command, 'quiet_logging', lambda: None)
    config = fig1.get_config('quick')
    assert command.show_plan(config, (), tmp_path / 'work', 'h100:8') == 0
    told = capsys.readouterr().out
    assert told.startswith('to make: 7 pieces\n') and ' hours of 8 on h100:8, at 989 ' in told
    lines = [line for line in told.splitlines() if 'measure  positions' in line]
    names = ('nope', 'rope', 'rope_ntk', 'nope_uniform')
    assert {line.rpartition(': ')[2] for line in lines} == set(names)
    assert not (tmp_path / 'work').exists()
    assert command.show_plan(config, (), tmp_path / 'work', 'b200') == 2
    assert "--plan-for is 'b200'; accepted: h200" in capsys.readouterr().err
    other = {'settings': {'name': 'fig1'}}
    folder = tmp_path / 'work' / 'figures' / config.name
    folder.mkdir(parents=True)
    write_json(folder / 'spec.json', other)
    assert command.show_plan(config, (), tmp_path / 'work', 'h100') == 2
    assert 'holds a figure made from another config' in capsys.readouterr().err
