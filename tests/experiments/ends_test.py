"""Loss of the last tokens of documents by their length, as a config asks for it."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from experiments import execute
from experiments.build import build
from experiments.evaluations.lengths import LengthsSpec
from experiments.plan import make_plan
from experiments.specs import identifier
from experiments.workspace import Workspace
from nope import records
from nope.evals import forward, lengths
from tests.experiments import evaluations_test, execute_test

ENDS = {'cut': 'ends', 'windows': 8}


def spec_of(tmp_path: pathlib.Path, evaluation: dict[str, Any], **entry: Any) -> LengthsSpec:
    config = evaluations_test.config_of(tmp_path)
    del config.evals['norms']
    asked = {'kind': 'lengths', 'run': 'nope', 'times': (1.0, 2.0), 'evaluation': evaluation}
    config.evals['ends'] = {**asked, **entry}
    spec = build(config).evals['ends']
    assert isinstance(spec, LengthsSpec)
    return spec


def test_a_tail_and_a_range_of_documents_are_part_of_the_identity(tmp_path: pathlib.Path) -> None:
    usual = spec_of(tmp_path, {})
    assert (usual.tail, usual.windows.shortest, usual.windows.longest) == (None, None, None)
    others = [
        spec_of(tmp_path, {}, tail=0.25),
        spec_of(tmp_path, ENDS),
        spec_of(tmp_path, {**ENDS, 'shortest': 64}),
        spec_of(tmp_path, {**ENDS, 'shortest': 64, 'longest': 1024}),
    ]
    assert others[0].tail == 4
    assert len({identifier(spec) for spec in (usual, *others)}) == 5


def test_what_was_scored_is_measured_and_said(tmp_path: pathlib.Path) -> None:
    spec = spec_of(tmp_path, {**ENDS, 'shortest': 600, 'longest': 800}, tail=0.25)
    config = evaluations_test.config_of(tmp_path)
    del config.evals['norms']
    bench = execute_test.bench_of(build(config), tmp_path / 'work')
    pieces = make_plan(Workspace(tmp_path / 'work'), [spec]).missing
    execute.check(bench, pieces)
    execute.execute(bench, pieces)
    found = records.load(bench.workspace.folder(spec))
    assert found.attributes['tail'] == 4
    how = found.attributes['measured_on']['how']
    assert how.endswith('each the end of a document of at least 600 bytes and fewer than 800 bytes')
    assert np.isfinite(found['loss_tail']).all()
    assert (found['loss_tail'] != found['loss_window']).all()


@pytest.mark.parametrize(
    ('evaluation', 'message'),
    [
        ({**ENDS, 'shortest': 0}, r'shortest is 0; it must be at least 1'),
        ({**ENDS, 'longest': 33}, r'longest is 33; it must be above shortest and above the window'),
        ({**ENDS, 'shortest': 90, 'longest': 90}, r'longest is 90; it must be above shortest'),
        ({'cut': 'starts'}, r"cut is 'starts'; accepted: documents, packed, ends"),
    ],
)
def test_ranges_that_hold_nothing_are_refused(
    tmp_path: pathlib.Path, evaluation: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        spec_of(tmp_path, evaluation)


def test_windows_of_every_length_begin_with_bos_where_data_do(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = evaluations_test.config_of(tmp_path)
    del config.evals['norms']
    config.data.bos = True
    config.evals['all'] = {'kind': 'lengths', 'run': 'nope', 'times': (1.0, 2.0)}
    specs = build(config)
    bench = execute_test.bench_of(specs, tmp_path / 'work')
    read = []

    def noted(model: Any, variables: Any, blocks: np.ndarray, **options: Any) -> Any:
        read.append(blocks)
        return forward.means(model, variables, blocks, **options)

    monkeypatch.setattr(lengths, 'means', noted)
    pieces = make_plan(Workspace(tmp_path / 'work'), [specs.evals['all']]).missing
    execute.execute(bench, pieces)
    assert [blocks.shape[1] for blocks in read] == [17, 33]
    assert all((blocks[:, 0] == 257).all() for blocks in read)
    found = records.load(bench.workspace.folder(specs.evals['all']))
    assert found.attributes['measured_on']['how'].endswith('each beginning with BOS')
