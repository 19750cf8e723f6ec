"""Shapes, rules and logits that nobody chose."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from nope.attention import AttentionOutput, Mask, attention
from nope.attention.cases import Trial
from tests.attention.contract import assert_agrees

IMPLEMENTATIONS = [
    'reference',
    'chunked',
    'pallas_tpu_interpret',
    pytest.param('pallas_gpu_interpret', marks=pytest.mark.slow),  # it does not change any more
]
pytestmark = pytest.mark.usefixtures('interpreted_kernels')
# The same examples everywhere. A shape takes seconds to compile, so none is sought that is simpler.
SHAPES = settings(deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
VALUES = settings(max_examples=200, deadline=None, derandomize=True)
KEYS = 24


@st.composite
def cases(draw) -> Trial:
    heads, kv_heads = draw(st.sampled_from([(2, 1), (4, 2), (4, 4), (6, 2)]))
    queries, keys = draw(st.integers(1, 150)), draw(st.integers(1, 200))
    causal, offset = draw(st.booleans()), draw(st.none() | st.integers(-30, 220))
    if causal and offset is None:
        keys = queries
    bias = draw(st.sampled_from(['none', 'none', 'alibi', 'buckets']))
    return Trial(
        'random',
        draw(st.integers(1, 2)),
        queries,
        keys,
        heads,
        kv_heads,
        draw(st.sampled_from([8, 32, 48, 64, 80, 128, 256])),
        causal,
        draw(st.sampled_from(['none', 'packed', 'empty'])) if min(queries, keys) > 1 else 'none',
        draw(st.sampled_from(['float32', 'float32', 'bfloat16', 'float16'])),
        draw(st.none() | st.integers(1, 200)),
        offset,
        bias,
    )


@pytest.mark.parametrize('examples', [2, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize('implementation', IMPLEMENTATIONS)
def test_any_shape_agrees_with_the_definition(implementation: str, examples: int) -> None:
    @settings(SHAPES, max_examples=examples)
    @given(cases())
    def agrees(case: Trial) -> None:
        # Logits of up to 256 products: 1e-5 in float32. Gradients of slopes and tables are sums
        # over all pairs, some of terms a hundred times as large: 1e-4.
        assert_agrees(implementation, case, slack=5.0, gradient_slack=50.0)

    agrees()


@pytest.mark.parametrize('examples', [1, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize('implementation', IMPLEMENTATIONS)
def test_any_shape_with_a_key_bias_agrees(implementation: str, examples: int) -> None:
    @settings(SHAPES, max_examples=examples)
    @given(cases())
    def agrees(case: Trial) -> None:
        biased = dataclasses.replace(case, bias='none', key_bias=True)
        assert_agrees(implementation, biased, slack=5.0, gradient_slack=50.0)

    agrees()


@functools.cache
def row_of_logits(implementation: str):
    """From logits [KEYS] and which of them are visible to one row of attention over them, whose
    `out` is the weights. The products are exact: queries are logits, keys and values unit vectors.
    """
    unit = jnp.eye(KEYS)[None, :, None, :]

    def run(logits_S: jax.Array, visible_S: jax.Array) -> AttentionOutput:
        mask = Mask(False, jnp.ones((1, 1), jnp.int32), visible_S[None])
        query = logits_S[None, None, None, :]
        return attention(query, unit, unit, mask=mask, entropy=True, implementation=implementation)

    return jax.jit(run)


@pytest.mark.parametrize('implementation', IMPLEMENTATIONS)
def test_any_logits(implementation: str) -> None:
    """Finite, and right, from -1e4 to 1e4; the entropy of n keys is between 0 and ln n."""
    number = st.floats(-1e4, 1e4, width=32, allow_subnormal=False) | st.floats(-3, 3, width=32)

    @VALUES
    @given(st.lists(number, min_size=1, max_size=KEYS))
    @example([1e4] * KEYS)
    @example([-1e4] * KEYS)
    @example([1e4] + [-1e4] * (KEYS - 1))
    def right(logits: list[float]) -> None:
        hidden = KEYS - len(logits)
        padded = np.asarray(logits + [0.0] * hidden, np.float32)
        visible = np.asarray([1] * len(logits) + [0] * hidden, np.int32)
        result = row_of_logits(implementation)(padded, visible)
        exact = padded.astype(np.float64)[: len(logits)]
        weights = np.exp(exact - exact.max())
        lse = exact.max() + np.log(weights.sum())
        weights /= weights.sum()
        entropy = -np.sum(weights * np.log(np.where(weights > 0, weights, 1.0)))
        out = np.asarray(result.out[0, 0, 0])
        np.testing.assert_allclose(out[: len(logits)], weights, rtol=0, atol=2e-6)
        assert np.all(out[len(logits) :] == 0)
        found = float(result.entropy[0, 0, 0])
        np.testing.assert_allclose(float(result.lse[0, 0, 0]), lse, rtol=1e-6, atol=2e-6)
        np.testing.assert_allclose(found, entropy, rtol=1e-5, atol=1e-5)
        assert -1e-5 <= found <= np.log(len(logits)) + 1e-5

    right()
