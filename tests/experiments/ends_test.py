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
from experiments.workspace import Workspace
from nope import records
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


@pytest.mark.slow
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
