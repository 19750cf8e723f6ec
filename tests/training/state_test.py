from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.model.lam import LogLength
from nope.sharding import MeshConfig
from nope.training.optim import TRAINS, OptimizerConfig
from nope.training.state import fresh_state
from nope.variables import Variables, abstract_variables, fresh_variables, lam_of, with_lam
from tests import tiny

MODEL = tiny.model(layers=1, lam=LogLength(train_length=8))
SPREAD = MeshConfig(fsdp=4, tensor=2)


@pytest.fixture(scope='module')
def fresh() -> Variables:
    """Spread over eight devices."""
    return fresh_variables(MODEL, sharding.make_mesh(SPREAD), seed=1)


def test_fresh_variables_do_not_depend_on_the_devices(fresh: Variables) -> None:
    single = fresh_variables(MODEL, tiny.mesh(), seed=1)
    tiny.assert_same(jax.device_get(fresh), jax.device_get(single))


def test_fresh_variables_follow_the_seed(fresh: Variables) -> None:
    other = fresh_variables(MODEL, tiny.mesh(), seed=2)
    assert np.all(np.asarray(other['params']['head']) != np.asarray(fresh['params']['head']))


def test_seeds_share_one_compilation(caplog: pytest.LogCaptureFixture) -> None:
    model = tiny.model(layers=1, width=40)
    said = []
    for seed in (1, 2):
        caplog.clear()
        with jax.log_compiles(), caplog.at_level('WARNING'):
            fresh_variables(model, tiny.mesh(), seed=seed)
        said.append('Finished XLA compilation' in caplog.text)
    assert said == [True, False]


def test_fresh_lambda_is_neutral(fresh: Variables) -> None:
    np.testing.assert_array_equal(lam_of(fresh), np.zeros((1, 4), np.float32), strict=True)


def test_abstract_variables_describe_fresh_ones(fresh: Variables) -> None:
    abstract = abstract_variables(MODEL, sharding.make_mesh(SPREAD))
    assert jax.tree.structure(fresh) == jax.tree.structure(abstract)
    for made, described in zip(jax.tree.leaves(fresh), jax.tree.leaves(abstract), strict=True):
        assert (made.shape, made.dtype) == (described.shape, described.dtype)
        assert made.sharding.is_equivalent_to(described.sharding, made.ndim)


def test_with_lam_changes_lambda_alone() -> None:
    variables = tiny.variables(MODEL)
    changed = with_lam(variables, jnp.full((1, 4), 1.5))
    assert changed['params'] is variables['params']
    np.testing.assert_array_equal(lam_of(changed), 1.5)
    np.testing.assert_array_equal(lam_of(variables), 0.0)


def test_moments_lie_where_their_parameters_do() -> None:
    """Replicated ones would undo the memory that sharding saves."""
    mesh = sharding.make_mesh(MeshConfig(data=2, fsdp=2, tensor=2))
    abstract = abstract_variables(MODEL, mesh)
    variables = jax.tree.map(
        lambda leaf, target: jax.device_put(leaf, target.sharding), tiny.variables(MODEL), abstract
    )
    optimizer = OptimizerConfig(learning_rate=1e-3)
    state, _ = fresh_state(variables, optimizer, mesh)
    placed = {leaf.shape: leaf.sharding for leaf in jax.tree.leaves(abstract['params'])}
    moments = [leaf for leaf in jax.tree.leaves(state.opt_state) if leaf.ndim]
    assert len(moments) == 2 * len(jax.tree.leaves(abstract['params']))
    for moment in moments:
        assert moment.sharding.is_equivalent_to(placed[moment.shape], moment.ndim)
    for leaf in jax.tree.leaves(state):
        assert leaf.sharding.device_set == set(mesh.devices.flat)


@pytest.mark.parametrize('trains', TRAINS)
def test_what_trains_is_copied_and_what_is_frozen_is_not(trains: str) -> None:
    """A step donates its state; whoever made the variables may still want them."""
    variables = tiny.variables(MODEL)
    optimizer = OptimizerConfig(learning_rate=1e-3, trains=trains)
    state, frozen = fresh_state(variables, optimizer, tiny.mesh())
    assert state.step == 0
    assert {*state.trained, *frozen} == {*variables}
    jax.tree.map(lambda leaf: leaf.delete(), state)
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(variables))
    for name, tree in frozen.items():
        kept = jax.tree.leaves(variables[name])
        assert all(a is b for a, b in zip(jax.tree.leaves(tree), kept, strict=True))
