"""Which token comes next."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nope.model.decoding import Sampling
from nope.model.decoding.choose import choose, keep
from tests import tiny

B, V = 40, 24
LOGITS_BV = np.random.default_rng(0).normal(0, 2, (B, V)).astype(np.float32)
DRAWS = 20_000

chosen = jax.jit(choose, static_argnums=0)
kept = jax.jit(keep, static_argnums=0)


def keys(count: int, seed: int = 0) -> jax.Array:
    return jax.random.split(jax.random.key(seed), count)


def kept_by_hand(sampling: Sampling, logits_V: np.ndarray) -> list[int]:
    """Tokens from the most likely one on, until there are enough."""
    order = sorted(range(len(logits_V)), key=lambda token: -logits_V[token])
    if sampling.top_k:
        order = order[: sampling.top_k]
    weights = np.exp(logits_V[order].astype(np.float64) - logits_V.max())
    found, reached = [], 0.0
    for token, share in zip(order, weights / weights.sum(), strict=True):
        if reached < sampling.top_p:
            found.append(token)
        reached += share
    return sorted(found)


@pytest.mark.parametrize(
    ('top_k', 'top_p'),
    [(0, 0.9), (0, 0.3), (0, 1e-6), (1, 1.0), (5, 1.0), (5, 0.8), (V, 1.0), (V + 1, 0.3)],
)
def test_the_tokens_kept_are_the_likeliest(top_k: int, top_p: float) -> None:
    """top_p counts the probabilities of what top_k leaves. Logits that stay are not changed."""
    sampling = Sampling(1.0, top_k, top_p)
    found_BV = np.asarray(kept(sampling, LOGITS_BV))
    for found_V, logits_V in zip(found_BV, LOGITS_BV, strict=True):
        stay = kept_by_hand(sampling, logits_V)
        assert np.flatnonzero(np.isfinite(found_V)).tolist() == stay
        np.testing.assert_array_equal(found_V[stay], logits_V[stay])


def test_tokens_as_likely_as_the_last_one_stay() -> None:
    found_V = kept(Sampling(1.0, top_k=2), np.array([[1, 3, 2, 2, 0, 2]], np.float32))[0]
    assert np.isfinite(found_V).tolist() == [False, True, True, True, False, True]


def test_a_token_that_is_held_back_is_never_kept() -> None:
    logits_BV = LOGITS_BV.copy()
    logits_BV[:, 3] = -np.inf
    for sampling in (Sampling(1.0), Sampling(1.0, top_p=0.999), Sampling(0.5, top_k=V - 1)):
        assert np.all(np.isneginf(kept(sampling, logits_BV)[:, 3]))
        assert not np.any(np.isnan(kept(sampling, logits_BV)))


def test_a_temperature_of_zero_takes_the_likeliest() -> None:
    """The first of those that are alike, whatever top_k and top_p are."""
    logits_BV = LOGITS_BV.copy()
    logits_BV[0] = 0
    expected = logits_BV.argmax(axis=1).astype(np.int32)
    for sampling in (Sampling(), Sampling(0.0, 3, 0.5)):
        tiny.assert_same(chosen(sampling, logits_BV, keys(B)), expected)


@pytest.mark.parametrize(
    'sampling', [Sampling(1.0), Sampling(0.5), Sampling(2.0, top_k=5), Sampling(1.5, top_p=0.8)]
)
def test_samples_have_the_probabilities_of_the_logits_by_temperature(sampling: Sampling) -> None:
    """The statistic chi squared of the counts is below what one in ten thousand exceeds."""
    logits_V = np.float64([0.0, 1.0, -1.0, 2.0, 0.5, 0.2, 1.7, -0.4])
    scaled_V = logits_V / sampling.temperature
    stay = kept_by_hand(sampling, scaled_V)
    share = np.exp(scaled_V[stay])
    expected = DRAWS * share / share.sum()
    rows = np.tile(np.float32(logits_V), (DRAWS, 1))
    counts = np.bincount(chosen(sampling, rows, keys(DRAWS)), minlength=8)
    assert counts.sum() == counts[stay].sum() == DRAWS
    statistic = np.sum((counts[stay] - expected) ** 2 / expected)
    limit = {7: 29.9, 5: 25.7, 4: 23.5}  # by degrees of freedom
    assert statistic < limit[len(stay) - 1]


def test_a_row_depends_on_its_own_key_alone() -> None:
    sampling, order = Sampling(1.0, top_p=0.9), np.arange(B)[::-1]
    found = np.asarray(chosen(sampling, LOGITS_BV, keys(B)))
    tiny.assert_same(chosen(sampling, LOGITS_BV[order], keys(B)[order]), found[order])
    assert np.any(chosen(sampling, LOGITS_BV, keys(B, seed=1)) != found)


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'temperature': -0.1}, 'temperature is -0.1; it must be finite, 0 or more'),
        ({'temperature': float('nan')}, 'temperature is nan'),
        ({'temperature': float('inf')}, 'temperature is inf'),
        ({'top_k': -1}, 'top_k is -1; it must be 0'),
        ({'top_p': 0.0}, r'top_p is 0.0; it lies in \(0, 1\]'),
        ({'top_p': 1.01}, 'top_p is 1.01'),
        ({'top_p': float('nan')}, 'top_p is nan'),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sampling(**fields)
