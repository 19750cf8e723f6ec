"""tools/bench_search.py on a tiny model."""

from __future__ import annotations

import pathlib

import pytest

from nope.model import counts
from tests import tiny
from tests.tools.loading import load

tool = load('bench_search')


@pytest.mark.slow
def test_a_search_holds_its_weights_once_and_saves_none(tmp_path: pathlib.Path) -> None:
    case = tool.Case('tiny', tiny.model(attention=None, width=64), 16, 8)
    shared = tool.held(tool.jax.live_arrays())
    found = tool.measure(case, 2, tmp_path)
    assert found['weights'] == 4 * counts.parameters(case.model)
    assert found['arrays_between_steps'] - shared < found['weights'] + 1024
    assert 0 <= found['step_results_elsewhere'] < 1024
    assert 10 * found['checkpoint'] < found['checkpoint_with_weights']
