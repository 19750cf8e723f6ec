"""Parts of the keys, combined, are the attention over all of them."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AttentionOutput, Mask, attention
from nope.attention.cases import Trial, make_inputs
from nope.attention.combine import combine
from tests.attention.contract import OUTPUTS, TOLERANCE, assert_close, value_and_gradients

CASES = [
    Trial('causal', 2, 60, 60, 4, 2, 8),
    Trial('empty_rows', 2, 60, 60, 4, 2, 8, segments='empty'),
    Trial('full', 2, 40, 70, 4, 2, 8, causal=False, bias='alibi'),
]


def in_parts(cuts: tuple[int, ...], q, k, v, *, mask: Mask, bias, entropy) -> AttentionOutput:
    """Attention over k[:, :cuts[0]], k[:, cuts[0]:cuts[1]], ..., combined from the left."""
    ends = [0, *cuts, k.shape[1]]
    parts = []
    for begin, end in itertools.pairwise(ends):
        ids = mask.kv_segments_BS
        here = Mask(
            mask.causal,
            mask.q_segments_BT,
            None if ids is None else ids[:, begin:end],
            offset=-begin,
        )
        some = slice(begin, end)
        parts.append(
            attention(
                q, k[:, some], v[:, some], mask=here, bias=bias, entropy=entropy,
                implementation='reference',
            )
        )  # fmt: skip
    return functools.reduce(combine, parts)


@functools.cache
def whole(case: Trial):
    function = functools.partial(attention, implementation='reference')
    return value_and_gradients(function, make_inputs(case), OUTPUTS)


@pytest.mark.parametrize(
    'cuts', [(1,), pytest.param((20,), marks=pytest.mark.slow), (20, 21, 45)], ids=str
)
@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)
def test_parts_make_the_whole(case: Trial, cuts: tuple[int, ...]) -> None:
    """Values and gradients. Early queries see nothing of the late parts."""
    found = value_and_gradients(functools.partial(in_parts, cuts), make_inputs(case), OUTPUTS)
    for array, right in zip(jax.tree.leaves(found), jax.tree.leaves(whole(case)), strict=True):
        assert_close(array, right, 2 * TOLERANCE['float32'])


def one_row(lse: float, entropy: float, out: float) -> AttentionOutput:
    """Its largest logit is its log-sum-exp: of a row of one key, or of none."""
    return AttentionOutput(
        jnp.full((1, 1, 1, 1), out), *(jnp.full((1, 1, 1), x) for x in (lse, entropy, lse))
    )


def test_equal_parts_add_the_entropy_of_a_fair_choice() -> None:
    both = combine(one_row(3.0, 0.5, 1.0), one_row(3.0, 0.7, 2.0))
    np.testing.assert_allclose(both.out.item(), 1.5, rtol=1e-6)
    np.testing.assert_allclose(both.lse.item(), 3.0 + np.log(2), rtol=1e-6)
    np.testing.assert_allclose(both.entropy.item(), 0.6 + np.log(2), rtol=1e-6)


@pytest.mark.parametrize('far', [1e4, -1e4])
def test_a_part_that_dominates_is_the_whole(far: float) -> None:
    strong, weak = one_row(far, 0.5, 1.0), one_row(far - 2000.0, 0.7, 2.0)
    for both in (combine(strong, weak), combine(weak, strong)):
        assert [x.item() for x in both] == [1.0, far, 0.5, far]


def test_nothing_and_nothing_is_nothing() -> None:
    nothing = one_row(-np.inf, 0.0, 0.0)
    assert [x.item() for x in combine(nothing, nothing)] == [0.0, -np.inf, 0.0, -np.inf]
    something = one_row(1.0, 0.5, 2.0)
    for both in (combine(nothing, something), combine(something, nothing)):
        assert [x.item() for x in both] == [2.0, 1.0, 0.5, 1.0]


def test_without_entropy_there_is_none() -> None:
    part = one_row(1.0, 0.5, 2.0)
    assert combine(part, part._replace(entropy=None)).entropy is None


def test_the_largest_logit_is_the_larger_part_s_and_a_constant() -> None:
    small, large = one_row(1.0, 0.5, 2.0), one_row(3.0, 0.5, 2.0)
    assert combine(small, large).max_logit.item() == combine(large, small).max_logit.item() == 3.0
    assert combine(small, large._replace(max_logit=None)).max_logit is None
    gradient = jax.grad(lambda x: combine(small, large._replace(max_logit=x)).max_logit.sum())
    assert gradient(large.max_logit).item() == 0.0
