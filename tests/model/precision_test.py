"""Products of float32 models are of float32, also where accelerators round unless told."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Literal

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


def equations(jaxpr: Any, name: str) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        if equation.primitive.name == name:
            yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, 'eqns')):
            if hasattr(value, 'eqns'):
                yield from equations(value, name)


@pytest.mark.parametrize('name', MODELS)
def test_a_training_step_rounds_no_float32_before_a_product(name: str) -> None:
    model = MODELS[name]
    variables = abstract_variables(model, tiny.mesh())
    batch = Batch.of_blocks(tiny.tokens(2, 17))
    step = jax.value_and_grad(functools.partial(batch_loss, model))
    found = list(equations(jax.make_jaxpr(step)(variables, batch).jaxpr, 'dot_general'))
    assert len(found) > 20
    assert all(x.aval.dtype == jnp.float32 for e in found for x in e.invars)
    assert not [str(e) for e in found if e.params['precision'] != HIGHEST]


def test_a_bfloat16_model_multiplies_by_constants_that_are_not_rounded() -> None:
    model = tiny.model(dtype='bfloat16', residual_multiplier=0.22, logit_multiplier=0.1)
    variables = abstract_variables(model, tiny.mesh())
    loss = functools.partial(batch_loss, model)
    jaxpr = jax.make_jaxpr(loss)(variables, Batch.of_blocks(tiny.tokens(2, 17))).jaxpr
    values = [
        float(x.val)
        for equation in equations(jaxpr, 'mul')
        for x in equation.invars
        if isinstance(x, Literal) and x.aval.dtype in (jnp.bfloat16, jnp.float32)
    ]
    rounded = [float(jnp.bfloat16(x)) for x in (0.22, 0.1)]
    assert {*map(float, np.float32([0.22, 0.1]))} <= {*values}
    assert not {*rounded} & {*values}
