"""What every implementation of attention promises; a test class of its own inherits it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AlibiBias, AttentionOutput, Mask, attention
from nope.attention.cases import Inputs, Trial, make_inputs
from nope.attention.reference import reference_attention
from tests.attention.cases import TEST_CASES

# Largest error allowed next to the definition in float64, relative to the largest entry of the
# array, or to 1 where that is larger. Float32 sums of a few thousand terms stay below the first;
# the half precisions round the weights and the outputs to their 8 and 11 bits.
TOLERANCE = {'float32': 2e-6, 'bfloat16': 1.6e-2, 'float16': 2e-3}

# Those of TEST_CASES that between them meet every rule, every dtype, one block and several.
COVERING = (
    'one_token', 'ragged', 'one_kv_head', 'empty_rows_one_block', 'full_empty_rows',
    'cached_one_query', 'cached_early', 'window_packed', 'window_full', 'alibi_full', 'every_rule',
    'buckets_bfloat16', 'float16',
)  # fmt: skip
# Few queries over a cache, every rule at once; slow: several blocks, rows that see nothing, a half
# precision.
LARGEST = (
    ('cached_one_query', True), ('every_rule', True),
    *(pytest.param(name, entropy, marks=pytest.mark.slow) for name, entropy in (
        ('ragged', True), ('full_empty_rows', False), ('bfloat16', False))),
)  # fmt: skip
CAUSAL = Mask()
OUTPUTS = ('out', 'lse', 'entropy')


def value_and_gradients(
    function: Callable[..., AttentionOutput], inputs: Inputs, outputs: tuple[str, ...] = OUTPUTS
) -> tuple[AttentionOutput, tuple[np.ndarray, ...]]:
    """Everything `function` computes, with gradients pulled back from the named outputs: of q, k,
    v, the parameters of the bias and the key bias."""
    weights = {'out': inputs.d_out_BTNH, 'lse': inputs.d_lse_BNT, 'entropy': inputs.d_entropy_BNT}

    def pulled(q, k, v, bias, key_bias, mask):
        rules = {} if key_bias is None else {'key_bias_BNS': key_bias}
        rules |= {'mask': mask, 'bias': bias, 'entropy': 'entropy' in outputs}
        result = function(q, k, v, **rules)
        # Rows that see nothing have no lse to pull on.
        finite = result._replace(lse=jnp.where(jnp.isfinite(result.lse), result.lse, 0.0))
        products = (
            getattr(finite, name).astype(weights[name].dtype) * weights[name] for name in outputs
        )
        return sum(map(jnp.sum, products)), result

    gradient = jax.grad(pulled, argnums=(0, 1, 2, 3, 4), has_aux=True)
    gradient = jax.jit(gradient)
    arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, inputs.bias, inputs.key_bias_BNS
    gradients, result = gradient(*arrays, inputs.mask)
    return jax.tree.map(np.asarray, (result, tuple(jax.tree.leaves(gradients))))


@functools.cache
def compiled(implementation: str, entropy: bool) -> Callable[..., AttentionOutput]:
    function = functools.partial(attention, implementation=implementation, entropy=entropy)
    return jax.jit(function)


@functools.cache
def expected(case: Trial, outputs: tuple[str, ...] = OUTPUTS):
    """The definition in float64, on the same inputs."""
    with jax.enable_x64(True):
        inputs = make_inputs(case)
        arrays = {
            field.name: jax.tree.map(
                lambda x: jnp.asarray(x, 'float64'), getattr(inputs, field.name)
            )
            for field in dataclasses.fields(inputs)
            if field.name != 'mask'
        }
        precise = dataclasses.replace(inputs, **arrays)
        return value_and_gradients(reference_attention, precise, outputs)


def assert_agrees(
    implementation: str,
    case: Trial,
    outputs: tuple[str, ...] = OUTPUTS,
    slack: float = 1.0,
    gradient_slack: float | None = None,
) -> None:
    """Values and gradients are those of the definition, the dtypes those promised. slack,
    gradient_slack: factors on the tolerance of float32."""
    function = functools.partial(attention, implementation=implementation)
    result, gradients = value_and_gradients(function, make_inputs(case), outputs)
    right, right_gradients = expected(case, outputs)
    precise = slack * TOLERANCE['float32']
    tolerance = precise if case.dtype == 'float32' else TOLERANCE[case.dtype]
    for name, array, wanted in zip(AttentionOutput._fields, result, right, strict=True):
        if wanted is None:
            assert array is None
            continue
        assert array.dtype == (case.dtype if name == 'out' else 'float32')
        # lse and entropy are float32 sums whatever the dtype of the inputs.
        assert_close(array, wanted, tolerance if name == 'out' else precise)
    if case.dtype == 'float32':
        tolerance = TOLERANCE['float32'] * (slack if gradient_slack is None else gradient_slack)
    for index, (array, wanted) in enumerate(zip(gradients, right_gradients, strict=True)):
        assert array.dtype == (case.dtype if index < 3 else 'float32')
        assert np.all(np.isfinite(array.astype(np.float32)))
        assert_close(array, wanted, tolerance)


def assert_close(actual: Any, expected: Any, tolerance: float) -> None:
    actual, expected = (np.asarray(x, np.float64) for x in (actual, expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    size = max(np.max(np.abs(expected), where=finite, initial=0.0), 1.0)
    np.testing.assert_allclose(actual[finite], expected[finite], rtol=0, atol=tolerance * size)


def with_largest(
    implementation: str, inputs: Inputs, entropy: bool, max_logit: bool = True
) -> AttentionOutput:
    function = functools.partial(
        attention, implementation=implementation, entropy=entropy, max_logit=max_logit
    )
    rules = {'mask': inputs.mask, 'bias': inputs.bias, 'key_bias_BNS': inputs.key_bias_BNS}
    return jax.jit(function)(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, **rules)


def slow_but(fast: Collection[str], cases: Collection[Trial]) -> list[Any]:
    """Cases as parameters, their names as ids; those without one of these names are slow."""
    assert set(fast) <= {case.name for case in cases}
    return [
        pytest.param(case, marks=() if case.name in fast else pytest.mark.slow, id=case.name)
        for case in cases
    ]


class AttentionContract:
    """Inherit, name the implementation, and every property below is tested for it."""

    implementation: str

    def attend(
        self, q: Any, k: Any, v: Any, mask: Mask = CAUSAL, entropy: bool = False
    ) -> AttentionOutput:
        return compiled(self.implementation, entropy)(q, k, v, mask=mask)

    @pytest.mark.parametrize('case', slow_but(COVERING, TEST_CASES))
    def test_agrees_with_the_definition(self, case: Trial) -> None:
        assert_agrees(self.implementation, case)

    @pytest.mark.parametrize('output', OUTPUTS)
    @pytest.mark.parametrize(
        'name', [pytest.param('packed_one_block', marks=pytest.mark.slow), 'full_empty_rows']
    )
    def test_each_output_has_its_own_gradient(self, name: str, output: str) -> None:
        case = next(case for case in TEST_CASES if case.name == name)
        assert_agrees(self.implementation, case, (output,))

    @pytest.mark.parametrize(('name', 'entropy'), LARGEST)
    def test_largest_logits_are_those_of_the_definition(self, name: str, entropy: bool) -> None:
        """And nothing else changes where they are asked for."""
        inputs = make_inputs(next(case for case in TEST_CASES if case.name == name))
        found, right = (
            with_largest(each, inputs, entropy) for each in (self.implementation, 'reference')
        )
        assert found.max_logit is not None and found.max_logit.dtype == jnp.float32
        assert_close(found.max_logit, right.max_logit, TOLERANCE['float32'])
        plain = with_largest(self.implementation, inputs, entropy, max_logit=False)
        assert plain.max_logit is None
        same = found._replace(max_logit=None)
        for array, wanted in zip(jax.tree.leaves(same), jax.tree.leaves(plain), strict=True):
            np.testing.assert_array_equal(array, wanted)

    def test_no_gradient_passes_the_largest_logits(self) -> None:
        inputs = make_inputs(Trial('', 1, 40, 40, 4, 2, 8))

        def largest(q_BTNH: jax.Array, weight: float) -> jax.Array:
            result = attention(
                q_BTNH, inputs.k_BSKH, inputs.v_BSKH,
                max_logit=True, implementation=self.implementation,
            )  # fmt: skip
            assert result.max_logit is not None
            return jnp.sum(result.out) + weight * jnp.sum(result.max_logit)

        gradient = jax.jit(jax.grad(largest))
        np.testing.assert_array_equal(gradient(inputs.q_BTNH, 0.0), gradient(inputs.q_BTNH, 1000.0))

    @pytest.mark.parametrize('queries', [pytest.param(33, marks=pytest.mark.slow), 150])
    def test_rows_that_see_nothing_give_zero(self, queries: int) -> None:
        case = Trial('', 2, queries, queries, 16, 8, 8, segments='empty')
        inputs = make_inputs(case)
        function = functools.partial(attention, implementation=self.implementation)
        result, gradients = value_and_gradients(function, inputs)
        seen_BT = np.any(np.asarray(inputs.mask.as_array(2, queries, queries)), axis=-1)
        assert not seen_BT[0].any() and seen_BT[1].any() and not seen_BT[1].all()
        empty_BNT = np.broadcast_to(~seen_BT[:, None], result.lse.shape)
        assert np.all(np.asarray(result.out)[~seen_BT] == 0)
        assert np.all(np.asarray(result.lse)[empty_BNT] == -np.inf)
        assert np.all(np.asarray(result.entropy)[empty_BNT] == 0)
        d_q_BTNH, d_k_BSKH, d_v_BSKH = (np.asarray(x) for x in gradients)
        assert np.all(d_q_BTNH[~seen_BT] == 0)
        assert np.all(d_k_BSKH[0] == 0) and np.all(d_v_BSKH[0] == 0)

    @pytest.mark.parametrize('length', [pytest.param(50, marks=pytest.mark.slow), 150])
    def test_causal(self, length: int) -> None:
        """The gradient of row i reaches no key after i, and every key up to i."""
        inputs = make_inputs(Trial('', 1, length, length, 32, 32, 8))
        row = length - 20

        def at_row(k_BSKH):
            result = attention(
                inputs.q_BTNH, k_BSKH, inputs.v_BSKH, implementation=self.implementation
            )
            return jnp.sum(result.out[:, row])

        reached_S = np.abs(np.asarray(jax.jit(jax.grad(at_row))(inputs.k_BSKH))).max(axis=(0, 2, 3))
        assert np.all(reached_S[row + 1 :] == 0)
        assert np.all(reached_S[: row + 1] > 0)

    def test_segments_are_independent_sequences(self) -> None:
        inputs = make_inputs(Trial('', 1, 150, 150, 32, 16, 8))
        q, k, v = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH
        ids_BT = jnp.where(jnp.arange(150) < 70, 5, 0)[None]
        packed = self.attend(q, k, v, mask=Mask(True, ids_BT, ids_BT), entropy=True)
        for piece in (slice(0, 70), slice(70, 150)):
            alone = self.attend(q[:, piece], k[:, piece], v[:, piece], entropy=True)
            assert_close(packed.out[:, piece], alone.out, TOLERANCE['float32'])
            assert_close(packed.lse[..., piece], alone.lse, TOLERANCE['float32'])
            assert_close(packed.entropy[..., piece], alone.entropy, TOLERANCE['float32'])

    def test_cached_queries_are_rows_of_the_whole(self) -> None:
        """One compilation serves every offset."""
        inputs = make_inputs(Trial('', 1, 150, 150, 32, 16, 8, window=90, bias='alibi'))
        q, k, v = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH

        def run(q, offset=None):
            mask = dataclasses.replace(inputs.mask, offset=offset)
            return attention(
                q, k, v, mask=mask, bias=inputs.bias, entropy=True,
                implementation=self.implementation,
            )  # fmt: skip

        whole = jax.jit(lambda q: run(q))(q)
        at = jax.jit(run)
        for first in (0, 1, 63, 64, 147):
            part = at(q[:, first : first + 3], jnp.int32(first))
            rows = slice(first, first + 3)
            assert_close(part.out, whole.out[:, rows], TOLERANCE['float32'])
            assert_close(part.lse, whole.lse[..., rows], TOLERANCE['float32'])
            assert_close(part.entropy, whole.entropy[..., rows], TOLERANCE['float32'])
        assert at._cache_size() == 1

    @pytest.mark.parametrize('length', [pytest.param(40, marks=pytest.mark.slow), 150])
    def test_alibi_is_a_slope_along_the_keys(self, length: int) -> None:
        """-m (i - j) = m j - m i: one more coordinate of q and k, and a shift of the row."""
        inputs = make_inputs(Trial('', 1, length, length, 4, 4, 8, bias='alibi'))
        assert isinstance(inputs.bias, AlibiBias)
        slopes_N, at_T = inputs.bias.slopes_N, jnp.arange(float(length))
        wide = [(0, 0), (0, 0), (0, 0), (0, 1)]
        q = jnp.pad(inputs.q_BTNH, wide).at[..., 8].set(slopes_N)
        k = jnp.pad(inputs.k_BSKH, wide).at[..., 8].set(at_T[:, None])
        v = jnp.pad(inputs.v_BSKH, wide)
        sloped = self.attend(q, k, v, entropy=True)
        function = functools.partial(attention, implementation=self.implementation, entropy=True)
        biased = function(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, bias=inputs.bias)
        assert_close(biased.out, sloped.out[..., :8], 2e-5)
        assert_close(biased.lse, sloped.lse - slopes_N[:, None] * at_T, 2e-5)
        assert_close(biased.entropy, sloped.entropy, 2e-5)

    @pytest.mark.parametrize('length', [pytest.param(70, marks=pytest.mark.slow), 150])
    def test_a_bias_that_grows_with_distance(self, length: int) -> None:
        """What lies beyond the end of a ragged block has a bias too, here of hundreds."""
        inputs = make_inputs(Trial('', 2, length, length, 16, 8, 8, bias='alibi'))
        grows = dataclasses.replace(inputs, bias=AlibiBias(jnp.linspace(-2.0, -0.5, 16)))
        results = []
        for name in ('reference', self.implementation):
            function = functools.partial(attention, implementation=name)
            results.append(value_and_gradients(function, grows))
        for wanted, array in zip(*map(jax.tree.leaves, results), strict=True):
            assert_close(array, wanted, 2e-4)  # a logit of 300 carries a rounding error of 2e-5

    @pytest.mark.parametrize('offset', [-300.0, 300.0])
    def test_an_offset_of_the_logits_changes_only_lse(self, offset: float) -> None:
        """And entropy stays exact where the logits are large."""
        inputs = make_inputs(Trial('', 1, 150, 150, 32, 32, 16))
        # Exact products with the offset: one constant coordinate in q and k.
        q = inputs.q_BTNH.at[..., 0].set(offset)
        k = inputs.k_BSKH.at[..., 0].set(1.0)
        moved = self.attend(q, k, inputs.v_BSKH, entropy=True)
        plain = self.attend(q.at[..., 0].set(0.0), k, inputs.v_BSKH, entropy=True)
        # A logit of 300 carries a rounding error of 2e-5.
        assert_close(moved.lse, plain.lse + offset, 1e-6)
        assert_close(moved.out, plain.out, 1e-4)
        assert_close(moved.entropy, plain.entropy, 1e-4)

    @pytest.mark.parametrize('length', [8, 150, 2048])
    def test_equal_logits_have_the_entropy_of_their_number(self, length: int) -> None:
        """And out is the running mean, whatever the scale of q: the keys are all alike."""
        q = jax.random.normal(jax.random.key(0), (1, length, 1, 8))
        v = jax.random.normal(jax.random.key(1), (1, length, 1, 8))
        result = self.attend(q, jnp.ones((1, length, 1, 8)), v, entropy=True)
        seen_T = np.arange(1, length + 1)
        np.testing.assert_allclose(result.entropy[0, 0], np.log(seen_T), atol=2e-6)
        mean_TH = np.cumsum(np.asarray(v[0, :, 0], np.float64), axis=0) / seen_T[:, None]
        np.testing.assert_allclose(result.out[0, :, 0], mean_TH, atol=2e-6)

    @pytest.mark.parametrize('length', [pytest.param(40, marks=pytest.mark.slow), 150])
    def test_entropy_falls_with_the_scale_at_the_rate_of_the_variance(self, length: int) -> None:
        """dH/dp = -p Var_a(logit), the logits being p times those at p = 1."""
        inputs = make_inputs(Trial('', 1, length, length, 32, 32, 8))

        q, k, v, p = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, 1.5

        def entropy_BNT(q):
            return attention(q, k, v, entropy=True, implementation=self.implementation).entropy

        @jax.jit
        def slope(q):
            # Row i of the entropy depends on row i of p q alone.
            entropy, back = jax.vjp(entropy_BNT, p * q)
            return jnp.einsum('BTNH,BTNH->BNT', q, *back(jnp.ones_like(entropy)))

        logits = np.einsum('BTNH,BSNH->BNTS', *(np.asarray(x, np.float64) for x in (q, k)))
        weights = np.where(np.tri(length, dtype=bool), np.exp(p * logits), 0.0)
        weights /= weights.sum(-1, keepdims=True)
        mean = (weights * logits).sum(-1)
        variance = (weights * logits**2).sum(-1) - mean**2
        np.testing.assert_allclose(slope(q), -p * variance, atol=1e-5)

    def test_vmap_is_a_loop(self) -> None:
        inputs = make_inputs(Trial('', 2, 150, 150, 32, 16, 8))
        q, k, v = (x[:, None] for x in (inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH))
        function = functools.partial(attention, entropy=True, implementation=self.implementation)
        mapped = jax.jit(jax.vmap(function))(q, k, v)
        for row in range(2):
            alone = self.attend(q[row], k[row], v[row], entropy=True)
            found = jax.tree.map(lambda array, row=row: array[row], mapped)
            for array, wanted in zip(*map(jax.tree.leaves, (found, alone)), strict=True):
                assert_close(array, wanted, TOLERANCE['float32'])
