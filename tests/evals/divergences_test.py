from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.evals.divergences import (
    attention_distance,
    jensen_shannon,
    swapped_jensen_shannon,
    symmetric_kl,
)
from tests.vectors import VECTORS

OWN = VECTORS['divergences']
NAMES = {
    'jsd_nats': jensen_shannon,
    'released_code_reverse_jsd': swapped_jensen_shannon,
    'sym_kl': symmetric_kl,
}
DIVERGENCES = pytest.mark.parametrize('divergence', NAMES.values(), ids=lambda d: d.__name__)
Divergence = Callable[[np.ndarray, np.ndarray], np.ndarray]


def distributions(seed: int, *shape: int, sharpness: float = 3.0) -> np.ndarray:
    logits = sharpness * np.random.default_rng(seed).normal(size=shape)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def causal(seed: int, *shape: int) -> np.ndarray:
    weights = np.tril(distributions(seed, *shape))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('case', OWN)
def test_vector(case: str, name: str) -> None:
    p, q = np.array(OWN[case]['p']), np.array(OWN[case]['q'])
    np.testing.assert_allclose(NAMES[name](p, q), OWN[case][name], rtol=1e-6)


@DIVERGENCES
def test_it_is_symmetric(divergence: Divergence) -> None:
    p, q = distributions(0, 100, 7), distributions(1, 100, 7)
    np.testing.assert_array_equal(divergence(p, q), divergence(q, p))


@DIVERGENCES
def test_equal_distributions_are_at_0(divergence: Divergence) -> None:
    p = causal(0, 3, 9, 9)
    np.testing.assert_array_equal(divergence(p, p), np.zeros((3, 9)))


@DIVERGENCES
def test_different_distributions_are_apart(divergence: Divergence) -> None:
    assert np.all(divergence(distributions(0, 100, 7), distributions(1, 100, 7)) > 1e-3)


@DIVERGENCES
def test_leading_axes_are_the_same_as_one_at_a_time(divergence: Divergence) -> None:
    p, q = distributions(0, 3, 1, 7), distributions(1, 1, 4, 7)
    found = divergence(p, q)
    assert found.shape == (3, 4)
    assert found[2, 3] == divergence(p[2, 0], q[0, 3])


@DIVERGENCES
def test_it_is_computed_in_float64(divergence: Divergence) -> None:
    p, q = (distributions(seed, 5, 7).astype(np.float16) for seed in (0, 1))
    found = divergence(p, q)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, divergence(p.astype(float), q.astype(float)))


@DIVERGENCES
def test_nan_is_not_hidden(divergence: Divergence) -> None:
    nan, zero = np.array([math.nan, 0.5]), np.array([0.0, 1.0])
    assert np.isnan(divergence(nan, zero))
    assert np.isnan(divergence(zero, nan))


@DIVERGENCES
def test_unequal_last_axes_are_refused(divergence: Divergence) -> None:
    with pytest.raises(ValueError, match='last axes'):
        divergence(distributions(0, 3, 7), distributions(1, 3, 1))


@pytest.mark.parametrize('sharpness', [0.1, 3.0, 300.0])
def test_jensen_shannon_is_between_0_and_ln_2(sharpness: float) -> None:
    p, q = (distributions(seed, 1000, 7, sharpness=sharpness) for seed in (0, 1))
    found = jensen_shannon(p, q)
    assert found.min() > -1e-15
    assert found.max() < math.log(2) + 1e-15


def test_disjoint_distributions_are_at_ln_2_and_elsewhere_infinite() -> None:
    p, q = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    np.testing.assert_allclose(jensen_shannon(p, q), math.log(2), rtol=1e-15)
    assert swapped_jensen_shannon(p, q) == math.inf
    assert symmetric_kl(p, q) == math.inf


def test_jensen_shannon_of_the_smallest_weights_is_finite() -> None:
    smallest = np.nextafter(0.0, 1.0)
    found = jensen_shannon(np.array([smallest, 1.0]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(found, 0.0, atol=1e-300)


@DIVERGENCES
def test_attention_distance_is_the_mean_over_rows(divergence: Divergence) -> None:
    p_TT, q_TT = causal(0, 9, 9), causal(1, 9, 9)
    rows = [divergence(p_TT[:t, :t][-1], q_TT[:t, :t][-1]) for t in range(1, 10)]
    found = attention_distance(p_TT, q_TT, divergence=divergence)
    np.testing.assert_allclose(found, np.mean(rows), rtol=1e-12)


def test_attention_distance_is_of_the_true_divergence_unless_told() -> None:
    p_TT, q_TT = causal(0, 9, 9), causal(1, 9, 9)
    assert attention_distance(p_TT, q_TT) == jensen_shannon(p_TT, q_TT).mean()


def test_attention_distance_compares_all_pairs_of_heads() -> None:
    p_NTT, q_NTT = causal(0, 3, 9, 9), causal(1, 4, 9, 9)
    found = attention_distance(p_NTT[:, None], q_NTT[None])
    assert found.shape == (3, 4)
    np.testing.assert_allclose(found[1, 2], attention_distance(p_NTT[1], q_NTT[2]), rtol=1e-12)


def test_attention_of_other_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match=r'\(9, 9\) and \(1, 9\)'):
        attention_distance(causal(0, 9, 9), causal(1, 9, 9)[-1:])
