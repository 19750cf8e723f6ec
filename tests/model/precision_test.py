"""Products of float32 models are of float32, also where accelerators round unless told."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from nope.data import Batch
from nope.model import LayerKind
from nope.model.mixers import Mamba2
from nope.positions import ForgetGate
from nope.training.step import batch_loss
from nope.variables import abstract_variables
from tests import tiny

HIGHEST = (jax.lax.Precision.HIGHEST,) * 2
MODELS = {
    'reference': tiny.MODEL,
    'every option': tiny.EVERY_OPTION,
    'chunked': tiny.model(attention='chunked'),
    'gates': tiny.model(position=ForgetGate(), attention='chunked'),
    'Mamba-2': tiny.model(pattern=(LayerKind(mixer=Mamba2(4, 8, 6)), LayerKind())),
}


def products(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        if equation.primitive.name == 'dot_general':
            yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, 'eqns')):
            if hasattr(value, 'eqns'):
                yield from products(value)


@pytest.mark.parametrize('name', MODELS)
def test_a_training_step_rounds_no_float32_before_a_product(name: str) -> None:
    model = MODELS[name]
    variables = abstract_variables(model, tiny.mesh())
    batch = Batch.of_blocks(tiny.tokens(2, 17))
    step = jax.value_and_grad(functools.partial(batch_loss, model))
    found = list(products(jax.make_jaxpr(step)(variables, batch).jaxpr))
    assert len(found) > 20
    assert all(x.aval.dtype == jnp.float32 for e in found for x in e.invars)
    assert not [str(e) for e in found if e.params['precision'] != HIGHEST]
