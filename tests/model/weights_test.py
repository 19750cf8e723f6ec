"""Attention weights other than softmax's in the model."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nope.model import apply
from nope.model.checks import WEIGHTS
from nope.positions import Alibi, Split
from nope.training.config import check_whole_sequences
from tests import tiny
from tests.model.context_test import mesh_of
from tests.model.programs import T, influence, loss_and_gradients, run

DENSE = tuple(name for name in WEIGHTS if name != 'softmax')
# Half of the heads ALiBi, half without position, as in ASEntmax's models.
HALF = {'attention': None, 'position': Split(Alibi()), 'lam_layers': 'nope'}
each = pytest.mark.parametrize('weights', DENSE)


@each
def test_outputs_follow_earlier_tokens_and_no_later_one(weights: str) -> None:
    change_ST, _ = influence(tiny.model(layers=1, weights=weights, attention=None))
    np.testing.assert_array_equal(np.tril(change_ST, -1), 0)
    earlier = change_ST[np.triu_indices(T)]
    assert np.all(earlier > 1e-5)


def test_one_layer_of_entmax_ignores_the_order_and_one_of_stick_breaking_does_not() -> None:
    """The latest keys take first, so that stick-breaking knows distances without an encoding."""
    moved = {
        weights: influence(tiny.model(layers=1, weights=weights, attention=None))[1][-1]
        for weights in DENSE
    }
    assert moved['entmax'] < 1e-6
    assert moved['stick_breaking'] > 1e-3


@each
@pytest.mark.parametrize('temperature', ['none', 'adaptive'])
def test_half_alibi_half_without_position_trains_under_them(weights: str, temperature: str) -> None:
    """Every parameter has a gradient, and lambda where it acts; entropies are at most ln i."""
    config = tiny.model(layers=1, weights=weights, temperature=temperature, **HALF)
    blocks = tiny.tokens(2, T + 1)
    loss, gradients = loss_and_gradients(config, tiny.varied_lam(config), blocks)
    assert np.isfinite(loss)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradients['params']):
        assert np.all(np.isfinite(leaf)) and np.any(leaf != 0), path
    acts = config.heads_without_position
    np.testing.assert_array_equal(np.asarray(gradients['lam']['head']) != 0, acts)
    entropy_LBNT = run(config, tiny.varied_lam(config), blocks[:, :-1]).entropy
    assert entropy_LBNT is not None
    assert np.all(np.asarray(entropy_LBNT) <= np.log(np.arange(1, T + 1)) + 1e-5)


def test_a_mesh_that_splits_sequences_is_refused_by_its_field() -> None:
    mesh = mesh_of(2, 1, 2, 2)
    message = r'^compute\.later_mesh\.context is 2; accepted: 1 where model\.weights is .*entmax'
    with pytest.raises(ValueError, match=message):
        check_whole_sequences(
            tiny.model(attention=None, weights='entmax'), mesh, 'compute.later_mesh'
        )
    check_whole_sequences(tiny.MODEL, mesh, 'compute.later_mesh')


def test_the_shape_of_attention_is_that_of_softmax() -> None:
    config = tiny.model(attention=None, weights='entmax')
    with pytest.raises(ValueError, match=r"span is 4; .* the model has weights='entmax'"):
        jax.eval_shape(
            lambda tokens: apply(config, tiny.variables(config), tokens, span=4),
            jax.ShapeDtypeStruct((1, T), 'int32'),
        )
