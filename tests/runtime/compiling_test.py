"""Options of XLA for programs that run once, and where programs are kept."""

from __future__ import annotations

import pathlib

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


@pytest.mark.parametrize('chosen', ['', 'mine'])
@pytest.mark.parametrize('platform', ['cpu', 'gpu'])
def test_programs_of_a_gpu_are_kept_where_no_folder_is_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, platform: str, chosen: str
) -> None:
    names = ('jax_compilation_cache_dir', 'jax_persistent_cache_min_compile_time_secs')
    before = {name: getattr(jax.config, name) for name in names}
    monkeypatch.setattr(jax, 'default_backend', lambda: platform)
    try:
        jax.config.update(names[0], chosen or None)
        compiling.keep(tmp_path / 'programs')
        kept = str(tmp_path / 'programs') if platform == 'gpu' and not chosen else chosen or None
        assert getattr(jax.config, names[0]) == kept
        assert not (tmp_path / 'programs').exists()
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
