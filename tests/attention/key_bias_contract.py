"""What every implementation of attention that has a key bias promises about it; a test class of its
own inherits it."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AttentionOutput, attention
from nope.attention.cases import Inputs, Trial, make_inputs
from tests.attention.cases import KEY_BIAS_CASES
from tests.attention.contract import (
    OUTPUTS,
    TOLERANCE,
    assert_agrees,
    assert_close,
    slow_but,
    value_and_gradients,
)

# Those of KEY_BIAS_CASES that between them meet every rule, grouped heads and a half precision.
COVERING = 'key_bias_decode', 'key_bias_every_rule', 'key_bias_bfloat16'
SMALL = Trial('', 2, 150, 150, 16, 8, 8, key_bias=True)


class KeyBiasContract:
    """Inherit, name the implementation, and every property below is tested for it."""

    implementation: str

    def attend(self, inputs: Inputs, key_bias_BNS: jax.Array | None) -> AttentionOutput:
        def run(q, k, v, key_bias_BNS):
            return attention(
                q, k, v, mask=inputs.mask, bias=inputs.bias, key_bias_BNS=key_bias_BNS,
                entropy=True, implementation=self.implementation,
            )  # fmt: skip

        arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH
        return jax.jit(run)(*arrays, key_bias_BNS)

    @pytest.mark.parametrize('case', slow_but(COVERING, KEY_BIAS_CASES))
    def test_agrees_with_the_definition(self, case: Trial) -> None:
        assert_agrees(self.implementation, case)

    @pytest.mark.parametrize('output', OUTPUTS)
    def test_each_output_has_its_own_gradient(self, output: str) -> None:
        case = next(case for case in KEY_BIAS_CASES if case.name == 'key_bias_one_block')
        assert_agrees(self.implementation, case, (output,))

    def test_it_is_one_more_coordinate_of_the_keys(self) -> None:
        """Which every query has as 1: the same values without the operand."""
        inputs = make_inputs(Trial('', 2, 150, 150, 4, 4, 8, key_bias=True))
        wide = [(0, 0), (0, 0), (0, 0), (0, 1)]
        q = jnp.pad(inputs.q_BTNH, wide).at[..., 8].set(1.0)
        k = jnp.pad(inputs.k_BSKH, wide).at[..., 8].set(inputs.key_bias_BNS.swapaxes(1, 2))
        v = jnp.pad(inputs.v_BSKH, wide)
        function = functools.partial(attention, implementation=self.implementation, entropy=True)
        wanted = jax.jit(function)(q, k, v)
        found = self.attend(inputs, inputs.key_bias_BNS)
        assert_close(found.out, wanted.out[..., :8], TOLERANCE['float32'])
        assert_close(found.lse, wanted.lse, TOLERANCE['float32'])
        assert_close(found.entropy, wanted.entropy, TOLERANCE['float32'])

    def test_its_gradient_is_what_the_keys_gain_together(self) -> None:
        """A constant on all keys of a head moves lse by itself, and neither out nor entropy: the
        gradient sums to that of lse."""
        inputs = make_inputs(SMALL)
        function = functools.partial(attention, implementation=self.implementation)
        _, (*_, d_key_bias_BNS) = value_and_gradients(function, inputs)
        wanted_BN = np.sum(np.asarray(inputs.d_lse_BNT, np.float64), axis=-1)
        found_BN = np.sum(np.asarray(d_key_bias_BNS, np.float64), axis=-1)
        np.testing.assert_allclose(found_BN, wanted_BN, atol=2e-4)
        moved = self.attend(inputs, inputs.key_bias_BNS + 64.0)
        plain = self.attend(inputs, inputs.key_bias_BNS)
        assert_close(moved.lse, plain.lse + 64.0, 1e-6)
        assert_close(moved.out, plain.out, 2e-5)
        assert_close(moved.entropy, plain.entropy, 5e-5)

    @pytest.mark.parametrize('slope', [35.0, -35.0])
    def test_a_line_of_thousands(self, slope: float) -> None:
        """As the logarithms of gates sum up to: a row's keys in one block are thousands below or
        above those of another."""
        inputs = make_inputs(dataclasses.replace(SMALL, segments='packed'))
        steep_BNS = inputs.key_bias_BNS + jnp.arange(150.0) * slope
        steep = dataclasses.replace(inputs, key_bias_BNS=steep_BNS)
        (right, right_gradients), (found, gradients) = (
            value_and_gradients(functools.partial(attention, implementation=name), steep)
            for name in ('reference', self.implementation)
        )
        assert np.max(np.abs(right.lse)) > 2000
        assert_close(found.lse, right.lse, 1e-6)
        # A logit of 5,000 carries a rounding error of 2e-4.
        pairs = zip((found.out, found.entropy, *gradients),
                    (right.out, right.entropy, *right_gradients), strict=True)  # fmt: skip
        for array, wanted in pairs:
            assert_close(array, wanted, 2e-3)

    def test_hidden_keys_have_no_say_whatever_their_bias(self) -> None:
        """Neither those after a causal query nor those of another segment."""
        inputs = make_inputs(SMALL)
        late_S = jnp.arange(150) >= 90
        found = self.attend(inputs, jnp.where(late_S, 1e6, inputs.key_bias_BNS))
        plain = self.attend(inputs, inputs.key_bias_BNS)
        for array, wanted in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
            axis = 1 if array.ndim == 4 else 2
            early, right = (np.take(np.asarray(x), np.arange(90), axis) for x in (array, wanted))
            assert_close(early, right, TOLERANCE['float32'])
        assert np.all(np.asarray(found.lse)[..., 90:] > 1e5)

    def test_without_one_there_is_no_operation_for_it(self) -> None:
        """Forward and backward, the traced programs are those of calls that do not name it. One
        that is not differentiated has no gradient in the program."""
        inputs = make_inputs(Trial('', 1, 150, 150, 4, 2, 8, key_bias=True))
        without = dataclasses.replace(inputs, key_bias_BNS=None)
        unnamed = self._gradient_program(without, ('q_BTNH', 'k_BSKH'), named=False)
        plain = self._gradient_program(without, ('q_BTNH', 'k_BSKH'))
        fixed = self._gradient_program(inputs, ('q_BTNH', 'k_BSKH'))
        pulled = self._gradient_program(inputs, ('q_BTNH', 'k_BSKH', 'key_bias_BNS'))
        assert unnamed == plain
        sums = [text.count('reduce_sum') for text in (plain, fixed, pulled)]
        assert sums[0] == sums[1] < sums[2]

    def _gradient_program(self, inputs: Inputs, of: tuple[str, ...], *, named: bool = True) -> str:
        """The operations of the gradient of all outputs by the arrays `of`. named: whether the call
        has the key bias among its arguments."""

        def pulled(arrays: dict[str, jax.Array]) -> jax.Array:
            x = dataclasses.replace(inputs, **arrays)
            result = attention(
                x.q_BTNH, x.k_BSKH, x.v_BSKH, entropy=True, implementation=self.implementation,
                **({'key_bias_BNS': x.key_bias_BNS} if named else {}),
            )  # fmt: skip
            return jnp.sum(result.out) + jnp.sum(result.lse) + jnp.sum(result.entropy)

        return str(jax.make_jaxpr(jax.grad(pulled))({name: getattr(inputs, name) for name in of}))
