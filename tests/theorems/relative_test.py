from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import apply
from nope.runtime.errors import FieldError
from nope.theorems import relative

V = 24
# Of the sixth query over its six keys, slope 1.
SIXTH = (0.004269779, 0.011606461, 0.031549633, 0.085760795, 0.233122010, 0.633691323)


def weights(slope: float = 1.0, content_VV: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    """[T, T] weights of the second layer, as the hidden states have them, by position of the key;
    tokens in a drawn order after the first."""
    config = relative.model(V, V)
    order_T = tokens(seed)
    variables = relative.variables(config, slope, content_VV, seed)
    hidden = np.asarray(apply(config, variables, jnp.asarray(order_T[None])).hidden[0])
    return hidden[:, relative.weights(config)][:, order_T]


def tokens(seed: int) -> np.ndarray:
    rest = 1 + np.random.default_rng(seed).permutation(V - 1)
    return np.concatenate([[0], rest])


def expected(slope: float, content_TT: np.ndarray) -> np.ndarray:
    t = np.arange(V)
    logits = slope * (t[None] - t[:, None]) + content_TT
    logits[t[None] > t[:, None]] = -np.inf
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_weights_of_the_second_layer_follow_the_distance() -> None:
    found = weights()
    np.testing.assert_allclose(found[5, :6], SIXTH, atol=1e-6)
    np.testing.assert_allclose(found, expected(1.0, np.zeros((V, V))), atol=1e-5)


@pytest.mark.parametrize('seed', [0, 1])
@pytest.mark.parametrize('slope', [0.25, 2.0])
def test_contents_add_to_a_term_of_the_distance_alone(slope: float, seed: int) -> None:
    content_VV = np.random.default_rng(seed + 7).normal(size=(V, V))
    order_T = tokens(seed)
    of_pairs = content_VV[order_T][:, order_T]
    np.testing.assert_allclose(
        weights(slope, content_VV, seed), expected(slope, of_pairs), atol=1e-5
    )


def test_ratios_of_weights_are_those_of_the_distance_at_every_query() -> None:
    """exp(slope) from key to key, wherever the query stands."""
    found = weights(0.5)
    for t in range(1, V):
        np.testing.assert_allclose(found[t, 1 : t + 1] / found[t, :t], np.exp(0.5), rtol=1e-4)


def test_later_tokens_get_no_weight() -> None:
    np.testing.assert_array_equal(np.triu(weights(), 1), 0)


def test_contents_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r'content_VV has shape \(3, 4\)'):
        relative.variables(relative.model(8, 4), content_VV=np.zeros((3, 4)))


@pytest.mark.parametrize(('field', 'arguments'), [('longest', (0, 4)), ('vocab_size', (4, 0))])
def test_nothing_to_count_or_to_compare_is_refused(field: str, arguments: tuple[int, int]) -> None:
    with pytest.raises(FieldError, match=field):
        relative.model(*arguments)
