"""What every implementation of attention with factors by distance promises about them; a test class
of its own inherits it."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AlibiBias, Bias, ScaleInvariantBias, attention
from nope.attention.bias import as_array, factors_as_array
from nope.attention.cases import Inputs, Trial, make_inputs
from tests.attention.cases import FACTOR_CASES
from tests.attention.contract import (
    OUTPUTS,
    TOLERANCE,
    assert_agrees,
    assert_close,
    compiled,
    slow_but,
)

# Those of FACTOR_CASES that between them meet every rule, grouped heads and a half precision.
COVERING = 'factors_decode', 'factors_every_rule', 'factors_bfloat16'


class FactorContract:
    """Inherit, name the implementation, and every property below is tested for it."""

    implementation: str

    @pytest.mark.parametrize('case', slow_but(COVERING, FACTOR_CASES))
    def test_agrees_with_the_definition(self, case: Trial) -> None:
        assert_agrees(self.implementation, case)

    # All three together are in the cases above.
    @pytest.mark.parametrize('output', [
        pytest.param(name, marks=() if name == 'entropy' else pytest.mark.slow) for name in OUTPUTS
    ])  # fmt: skip
    def test_each_output_has_its_own_gradient(self, output: str) -> None:
        case = next(case for case in FACTOR_CASES if case.name == 'factors_one_block')
        assert_agrees(self.implementation, case, (output,))

    def test_logits_are_factor_times_product_plus_bias(self) -> None:
        """Of one row: a softmax written out."""
        inputs = make_inputs(Trial('', 1, 1, 40, 2, 2, 8, offset=39, bias='scale_invariant'))
        assert inputs.bias is not None
        factors_NS = np.asarray(factors_as_array(inputs.bias, 1, 40, 39))[:, 0]
        bias_NS = np.asarray(as_array(inputs.bias, 1, 40, 39))[:, 0]
        products_NS = np.einsum('NH,SNH->NS', inputs.q_BTNH[0, 0], inputs.k_BSKH[0])
        assert np.all(factors_NS[:, -1] == 1) and np.all(np.diff(factors_NS) < 0)
        logits_NS = factors_NS * products_NS + bias_NS
        found = self._attend(inputs, inputs.bias)
        assert_close(found.lse[0, :, 0], np.log(np.exp(logits_NS).sum(axis=-1)), 1e-6)

    def test_a_strength_of_0_leaves_the_products_as_they_are(self) -> None:
        inputs = make_inputs(Trial('', 2, 90, 90, 4, 2, 8))
        found = self._attend(inputs, ScaleInvariantBias(jnp.zeros(4)))
        plain = self._attend(inputs, None)
        for array, wanted in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
            assert_close(array, wanted, TOLERANCE['float32'])

    def test_other_biases_have_no_operation_for_factors(self) -> None:
        inputs = make_inputs(Trial('', 1, 150, 150, 4, 2, 8))
        plain, factors = AlibiBias(jnp.ones(4)), ScaleInvariantBias(jnp.ones(4))
        texts = [self._gradient_program(inputs, bias) for bias in (plain, factors)]
        assert texts[0].count('dot_general') == texts[1].count('dot_general')
        assert texts[0].count(' mul ') < texts[1].count(' mul ')

    def _attend(self, inputs: Inputs, bias: Bias | None) -> Any:
        arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH
        return compiled(self.implementation, True)(*arrays, mask=inputs.mask, bias=bias)

    def _gradient_program(self, inputs: Inputs, bias: Bias) -> str:
        """The operations of the gradient of all outputs by q and k."""

        def pulled(arrays: dict[str, Any]) -> jax.Array:
            x = dataclasses.replace(inputs, **{'bias': bias, **arrays})
            result = attention(
                x.q_BTNH, x.k_BSKH, x.v_BSKH, bias=x.bias, entropy=True,
                implementation=self.implementation,
            )  # fmt: skip
            return jnp.sum(result.out) + jnp.sum(result.lse) + jnp.sum(result.entropy)

        arrays = {'q_BTNH': inputs.q_BTNH, 'k_BSKH': inputs.k_BSKH}
        return str(jax.make_jaxpr(jax.grad(pulled))(arrays))
