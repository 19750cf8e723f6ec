"""A kind of figure that is one file and one line of the registry is checked and drawn."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from ml_collections import ConfigDict

from experiments import draw, figures
from experiments.build import build
from experiments.homes import take_home
from experiments.plan import make_plan
from experiments.specs import identity
from experiments.workspace import Workspace
from nope import records
from tests.experiments import build_test
from tests.experiments.figures import synthetic
from tests.experiments.figures.loss_gap import LossGapFigure


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(figures.KINDS, 'loss_gap', LossGapFigure())


@pytest.fixture
def config() -> ConfigDict:
    """A figure of one model, by its positions."""
    config = build_test.config_of('fig1')
    config.evals = {'base': {'run': 'nope', 'times': 4.0}}
    config.figure = {'kind': 'loss_gap', 'record': 'base'}
    return config


def test_it_is_drawn_from_the_records_of_a_config(
    config: ConfigDict, tmp_path: pathlib.Path
) -> None:
    """As `experiments.run` does behind the measurements, and `experiments.draw` once more."""
    experiment, workspace = build(config), Workspace(tmp_path)
    (spec,) = experiment.evals.values()
    measured = synthetic.positions_records()
    take_home(workspace.folder(spec), identity(spec))
    records.save(measured, workspace.folder(spec))
    assert not make_plan(workspace, [spec]).missing

    folder = workspace.figure(experiment.name)
    sources = {name: workspace.folder(spec) for name, spec in experiment.evals.items()}
    draw.write_inputs(folder, experiment.name, experiment.figure, sources)
    picture = draw.draw(folder)
    assert picture == folder / 'fig1.png' and picture.read_bytes().startswith(b'\x89PNG')
    rows = synthetic.rows_of(folder / 'fig1.csv')
    loss = measured['loss']
    np.testing.assert_allclose(synthetic.column(rows, 'gap'), loss - loss.min())
    summary = json.loads((folder / 'summary.json').read_text())
    assert summary['runs'] == {'base': measured.attributes['run_id']}
    assert 'Loss of base above its lowest.' in summary['caption']

    first = picture.read_bytes()
    picture.unlink()
    assert draw.main([str(folder)]) == 0 and picture.read_bytes() == first


@pytest.mark.parametrize(
    ('figure', 'message'),
    [
        ({'kind': 'loss_gaps'}, r"^figure\.kind is 'loss_gaps'; accepted: .*loss_gap"),
        ({'kind': 'loss_gap'}, r"^figure 'fig1': options must give 'record', got None"),
        (
            {'kind': 'loss_gap', 'record': 'base', 'title': 'a'},
            r"^figure 'fig1': unknown key 'title' in options; accepted: \['record'\]",
        ),
        (
            {'kind': 'loss_gap', 'record': 'rope'},
            r"^figure \(loss_gap\) asks for 'rope', which is missing; .* \['base'\]",
        ),
    ],
    ids=['kind', 'missing', 'unknown', 'record'],
)
def test_its_options_are_checked_before_anything_is_trained(
    config: ConfigDict, figure: dict[str, str], message: str
) -> None:
    config.figure = figure
    with pytest.raises(ValueError, match=message):
        build(config)


def test_the_evaluation_it_asks_for_is_checked(config: ConfigDict) -> None:
    config.evals = {'base': {'run': 'nope', 'kind': 'lengths', 'times': (1.0, 2.0)}}
    message = r"^figure \(loss_gap\) needs evals\.base of kind 'positions', it is 'lengths'"
    with pytest.raises(ValueError, match=message):
        build(config)


def test_what_it_asks_of_its_records_is_checked_before_training(
    config: ConfigDict, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_known(_, name: str, options: dict, known: dict) -> None:
        raise ValueError(f'figure {name!r}: {options["record"]} reads {known["base"]["length"]}')

    monkeypatch.setattr(LossGapFigure, 'check_known', check_known)
    with pytest.raises(ValueError, match=r"^figure 'fig1': base reads 256$"):
        build(config)
    monkeypatch.undo()
    monkeypatch.setitem(figures.KINDS, 'loss_gap', LossGapFigure())
    monkeypatch.setattr(LossGapFigure, 'SHARED', ('train_length',))
    needs = {'base': 'positions', 'other': 'positions'}
    monkeypatch.setattr(LossGapFigure, 'needs', lambda *_: needs)
    config.runs.shorter = {'train': {'length': 32}, 'init': None}
    config.evals['other'] = {'run': 'shorter', 'times': 4.0}
    with pytest.raises(ValueError, match='compares records of one train_length; it is 32 by'):
        build(config)
