"""A search of lambda: one copy of the weights on the device, none in its checkpoints."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import jax
import numpy as np
import pytest

from nope.checkpoints.errors import CheckpointError
from nope.checkpoints.manager import Checkpoints
from nope.training.train import Interrupted
from nope.variables import Variables, lam_of
from tests import tiny
from tests.training import train_test
from tests.training.train_test import MODEL, SEARCH

IDENTITY = {'seed': 0}


@pytest.fixture(scope='module')
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, Variables]:
    """An uninterrupted search: its folder and its result."""
    folder = tmp_path_factory.mktemp('search')
    return folder, train_test.run(folder, SEARCH)


def saved(step: pathlib.Path) -> dict[str, Any]:
    """The checksums of a checkpoint."""
    return json.loads((step / 'checksums' / 'metadata').read_text())


def stopped(folder: pathlib.Path) -> None:
    with pytest.raises(Interrupted, match='step 3'):
        train_test.run(folder, SEARCH, stop_after=3)


def other_variables() -> Variables:
    variables = tiny.variables(MODEL)
    head_DV = variables['params']['head'] + 1.0
    return {**variables, 'params': {**variables['params'], 'head': head_DV}}


def test_a_checkpoint_holds_lambda_its_moments_and_no_parameter(
    whole: tuple[pathlib.Path, Variables],
) -> None:
    checkpoints = whole[0] / 'checkpoints'
    assert sorted(path.name for path in checkpoints.iterdir()) == ['4', '6']
    for step in checkpoints.iterdir():
        arrays = saved(step)['arrays']
        assert {path.split("'")[1] for path in arrays} == {'lam', 'opt_state'}
        assert len(arrays) == 5  # lambda, two moments, two counts
        files = [path for path in step.rglob('*') if path.is_file()]
        assert sum(path.stat().st_size for path in files) < 16_384


def test_a_checkpoint_has_the_checksums_of_its_base_model(
    whole: tuple[pathlib.Path, Variables],
) -> None:
    base = saved(whole[0] / 'checkpoints' / '6')['base']
    assert len(base) == len(jax.tree.leaves(tiny.variables(MODEL)['params']))
    assert all(path.startswith("['params']") for path in base)


def test_the_weights_are_the_very_same_buffers(whole: tuple[pathlib.Path, Variables]) -> None:
    before = jax.tree.leaves(tiny.variables(MODEL)['params'])
    after = jax.tree.leaves(whole[1]['params'])
    assert all(a is b for a, b in zip(before, after, strict=True))
    assert not any(leaf.is_deleted() for leaf in before)
    assert np.any(np.asarray(lam_of(whole[1])) != lam_of(tiny.variables(MODEL)))


def test_no_weight_is_copied_while_it_searches(tmp_path: pathlib.Path) -> None:
    """Between two steps the device holds nothing of a weight's shape but the weights."""
    shapes = {leaf.shape for leaf in jax.tree.leaves(tiny.variables(MODEL)['params'])}

    def of_weights() -> int:
        return sum(array.shape in shapes for array in jax.live_arrays())

    before, seen = of_weights(), []

    def should_stop() -> bool:
        seen.append(of_weights())
        return False

    train_test.run(tmp_path, SEARCH, should_stop=should_stop)
    assert seen == [before] * SEARCH.steps


def test_another_base_model_is_refused(tmp_path: pathlib.Path) -> None:
    stopped(tmp_path / 'run')
    before = train_test.final(tmp_path / 'run', SEARCH).arrays
    with pytest.raises(CheckpointError, match=r"another base model.*\['params'\]\['head'\]; move"):
        train_test.run(tmp_path / 'run', SEARCH, initial=other_variables)
    tiny.assert_same(train_test.final(tmp_path / 'run', SEARCH).arrays, before)


def test_parameters_are_not_sought_where_they_were_not_saved(
    whole: tuple[pathlib.Path, Variables],
) -> None:
    with Checkpoints(whole[0] / 'checkpoints', IDENTITY) as checkpoints:
        with pytest.raises(CheckpointError, match=r'step 6 .* has no params: .* its base model'):
            checkpoints.read(tiny.variables(MODEL))
        found = checkpoints.read({'lam': tiny.variables(MODEL)['lam']}, step=4)
    assert lam_of(found).shape == (1, 4)
