"""Attention with dense weights: masks, biases, groups and cached queries as under softmax."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AttentionOutput, Mask
from nope.attention.bias import as_array
from nope.attention.cases import Inputs, Trial, make_inputs
from nope.attention.dense import WEIGHTS, attention, dense_attention
from tests.attention.cases import TEST_CASES
from tests.attention.contract import TOLERANCE, assert_close, value_and_gradients
from tests.attention.dense.entmax_test import by_bisection
from tests.attention.dense.stick_breaking_test import by_product

RULES = tuple(WEIGHTS)
NAMED = {case.name: case for case in TEST_CASES}
# Between them every rule of a mask, biases, groups and queries after a cache.
CASES = [
    NAMED['empty_rows_one_block'],
    Trial('every_rule', 2, 9, 26, 4, 2, 8, True, 'packed', 'float32', 10, 15, 'buckets', True),
    Trial('factors', 1, 20, 20, 4, 2, 8, bias='scale_invariant'),
]
each_rule = pytest.mark.parametrize('weights', RULES)


@functools.partial(jax.jit, static_argnums=0)
def run(weights: str, x: Inputs) -> AttentionOutput:
    rules = {'mask': x.mask, 'bias': x.bias, 'key_bias_BNS': x.key_bias_BNS}
    return dense_attention(x.q_BTNH, x.k_BSKH, x.v_BSKH, weights=weights, entropy=True, **rules)


def attend(weights: str, inputs: Inputs, **changes: Any) -> AttentionOutput:
    return run(weights, dataclasses.replace(inputs, **changes))


def row_by_row(weights: str, x: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and entropies from the rule on each row's own keys, without masks and without heads
    that share keys, in float64."""
    (B, T, N, H), (S, K) = x.q_BTNH.shape, x.k_BSKH.shape[1:3]
    seen_BTS = np.array(x.mask.as_array(B, T, S))
    q_BTNH, k_BSKH, v_BSKH, key_bias_BNS = (
        np.asarray(array, np.float64) for array in (x.q_BTNH, x.k_BSKH, x.v_BSKH, x.key_bias_BNS)
    )
    assert x.bias is not None and isinstance(x.mask.offset, int)
    bias_NTS = np.asarray(as_array(x.bias, T, S, x.mask.offset), np.float64)
    out_BTNH, entropy_BNT = np.zeros((B, T, N, H)), np.zeros((B, N, T))
    for b, t, n in np.ndindex(B, T, N):
        seen_S = seen_BTS[b, t] & (np.arange(S) != x.mask.offset + t)
        if weights == 'entmax':
            seen_S = seen_BTS[b, t]
        logits_S = k_BSKH[b, :, n // (N // K)] @ q_BTNH[b, t, n]
        logits_S = (logits_S + bias_NTS[n, t] + key_bias_BNS[b, n])[seen_S]
        if weights == 'entmax' and seen_S.any():
            weights_S, rest = by_bisection(logits_S), 0.0
        else:
            weights_S, rest = by_product(logits_S, np.ones(len(logits_S), bool))  # of none: 1
        out_BTNH[b, t, n] = weights_S @ v_BSKH[b, seen_S, n // (N // K)]
        outcomes = np.append(weights_S, rest)
        entropy_BNT[b, n, t] = -np.sum(outcomes * np.log(np.where(outcomes > 0, outcomes, 1)))
    return out_BTNH, entropy_BNT


@each_rule
def test_a_row_is_the_rule_on_the_keys_that_it_sees(weights: str) -> None:
    """Under every rule of a mask, a bias and a key bias, with heads that share keys."""
    inputs = make_inputs(CASES[1])
    found = attend(weights, inputs)
    out_BTNH, entropy_BNT = row_by_row(weights, inputs)
    assert_close(found.out, out_BTNH, 5e-6)
    assert_close(found.entropy, entropy_BNT, 5e-6)


@each_rule
@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)
def test_gradients_are_finite_and_those_of_the_arrays_that_matter(
    case: Trial, weights: str
) -> None:
    inputs = make_inputs(case)
    function = functools.partial(dense_attention, weights=weights)
    result, gradients = value_and_gradients(function, inputs)
    assert all(np.all(np.isfinite(x)) for x in gradients)
    assert np.all(np.isfinite(result.out)) and np.all(result.entropy >= -1e-6)
    seen = np.any(np.isfinite(result.lse))
    assert np.any(gradients[2] != 0) == seen
    assert np.all(result.lse <= 1e-6)


@each_rule
def test_causal(weights: str) -> None:
    """The gradient of row i reaches no later key, and its own under entmax alone."""
    inputs = make_inputs(Trial('', 1, 20, 20, 4, 4, 8))
    inputs = dataclasses.replace(inputs, q_BTNH=0.1 * inputs.q_BTNH)  # nothing is far
    reached_S = jax.grad(lambda v: jnp.sum(attend(weights, inputs, v_BSKH=v).out[:, 11]))(
        inputs.v_BSKH
    )
    reached_S = np.abs(np.asarray(reached_S)).max(axis=(0, 2, 3))
    last = 12 if weights == 'entmax' else 11
    assert np.all(reached_S[last:] == 0) and np.all(reached_S[:last] > 0)


def test_the_first_query_of_stick_breaking_sees_nothing() -> None:
    inputs = make_inputs(Trial('', 2, 6, 6, 4, 2, 8))
    found = attend('stick_breaking', inputs)
    assert np.all(np.asarray(found.out)[:, 0] == 0)
    assert np.all(np.asarray(found.lse)[..., 0] == -np.inf)
    assert np.all(np.asarray(found.lse)[..., 1:] < 0)


@each_rule
def test_entropy_is_at_most_log_i(weights: str) -> None:
    """Of stick-breaking over i - 1 keys and what remains."""
    inputs = make_inputs(Trial('', 2, 60, 60, 4, 2, 8))
    for scale in (0.0, 1.0, 30.0):
        found = attend(weights, inputs, q_BTNH=scale * inputs.q_BTNH)
        assert np.all(np.asarray(found.entropy) <= np.log(np.arange(1, 61)) + 2e-6)


def test_equal_logits_give_the_mean_under_entmax_and_halves_under_stick_breaking() -> None:
    inputs = make_inputs(Trial('', 1, 5, 5, 1, 1, 8))
    q_BTNH = 0 * inputs.q_BTNH
    v_SH = np.asarray(inputs.v_BSKH)[0, :, 0]
    even = attend('entmax', inputs, q_BTNH=q_BTNH)
    np.testing.assert_allclose(even.out[0, -1, 0], v_SH.mean(axis=0), atol=1e-6)
    halves = attend('stick_breaking', inputs, q_BTNH=q_BTNH)
    wanted_H = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2]) @ v_SH[:4]
    np.testing.assert_allclose(halves.out[0, -1, 0], wanted_H, atol=1e-6)


@each_rule
def test_cached_queries_are_rows_of_the_whole(weights: str) -> None:
    """One compilation serves every offset."""
    inputs = make_inputs(Trial('', 1, 40, 40, 4, 2, 8, window=30, bias='alibi'))
    whole = attend(weights, inputs)
    programs = run._cache_size()
    for first in (0, 1, 37):
        mask = dataclasses.replace(inputs.mask, offset=jnp.int32(first))
        part = attend(weights, inputs, q_BTNH=inputs.q_BTNH[:, first : first + 3], mask=mask)
        assert_close(part.out, whole.out[:, first : first + 3], TOLERANCE['float32'])
        assert_close(part.entropy, whole.entropy[..., first : first + 3], 2e-6)
    assert run._cache_size() == programs + 1


@each_rule
@pytest.mark.parametrize('causal', [True, False])
def test_blocks_of_queries_are_the_whole(
    weights: str, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In values and gradients, also where the last block is smaller."""
    if weights == 'stick_breaking' and not causal:
        pytest.skip('has no order')
    case = Trial('', 2, 50, 50, 4, 2, 8, causal, 'packed', 'float32', window=20, key_bias=True)
    inputs = make_inputs(dataclasses.replace(case, bias='buckets'))
    function = functools.partial(dense_attention, weights=weights, max_logit=True)
    whole = value_and_gradients(function, inputs)
    monkeypatch.setattr(attention, 'QUERIES', 16)
    blocks = value_and_gradients(function, inputs)
    for found, expected in zip(jax.tree.leaves(blocks), jax.tree.leaves(whole), strict=True):
        assert_close(found, expected, 2e-6)


@each_rule
def test_half_precision_rounds_the_output_alone(weights: str) -> None:
    inputs = make_inputs(Trial('', 1, 30, 30, 4, 2, 8, dtype='bfloat16'))
    found = attend(weights, inputs)
    assert found.out.dtype == 'bfloat16'
    assert found.lse.dtype == found.entropy.dtype == 'float32'
    precise = {
        name: getattr(inputs, name).astype('float32') for name in ('q_BTNH', 'k_BSKH', 'v_BSKH')
    }
    wanted = attend(weights, inputs, **precise)
    assert_close(found.entropy, wanted.entropy, 2e-6)
    assert_close(found.out, wanted.out, 4e-3)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'weights': 'sparsemax'}, r"weights='sparsemax' is unknown; accepted: 'entmax', 'stick"),
        (
            {'weights': 'stick_breaking', 'mask': Mask(causal=False)},
            r"weights='stick_breaking' needs mask\.causal=True",
        ),
        ({'weights': 'entmax', 'key_bias_BNS': jnp.zeros((1, 4, 6))}, 'key_bias_BNS has shape'),
    ],
    ids=['rule', 'full', 'shape'],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    inputs = make_inputs(Trial('', 1, 7, 7, 4, 2, 8))
    with pytest.raises(ValueError, match=message):
        dense_attention(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, **changes)
