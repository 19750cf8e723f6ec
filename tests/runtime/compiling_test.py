"""Options of XLA for programs that run once."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nope.runtime import compiling
from nope.runtime.compiling import LEVEL, run_once
from nope.variables import _initialiser, fresh_variables
from tests import tiny


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """As outside of the tests, which choose a level for all that they compile."""
    monkeypatch.setattr(compiling, 'ONCE', {LEVEL: 1})
    monkeypatch.delenv('XLA_FLAGS', raising=False)


def test_only_cpus_optimise_less_and_only_where_no_level_is_chosen(fast, monkeypatch) -> None:
    assert run_once('cpu') == {LEVEL: 1}
    assert run_once('gpu') is None and run_once('tpu') is None
    monkeypatch.setenv('XLA_FLAGS', f'--{LEVEL}=3')
    assert run_once('cpu') is None


@pytest.mark.slow
def test_fresh_weights_are_those_of_full_optimisation(fast, monkeypatch) -> None:
    mesh = tiny.mesh()
    _initialiser.cache_clear()
    quick = fresh_variables(tiny.MODEL, mesh, 1)
    monkeypatch.setattr(compiling, 'ONCE', {LEVEL: 3})
    _initialiser.cache_clear()
    whole = fresh_variables(tiny.MODEL, mesh, 1)
    _initialiser.cache_clear()
    jax.tree.map(np.testing.assert_array_equal, quick, whole)
