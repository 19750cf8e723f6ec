from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import ModelConfig, apply
from nope.runtime.errors import FieldError
from nope.theorems import absolute


def positions(config: ModelConfig, T: int, seed: int = 0) -> np.ndarray:
    """What the model's own hidden states say, [T] float32."""
    tokens_T = np.random.default_rng(seed).integers(1, config.vocab_size, size=T)
    tokens_T[0] = absolute.BOS
    output = apply(config, absolute.variables(config, seed), jnp.asarray(tokens_T[None]))
    return np.asarray(output.hidden[0, :, absolute.POSITION], np.float32)


@pytest.mark.parametrize('seed', [0, 1])
@pytest.mark.parametrize('T', [1, 2, 64])
def test_the_hidden_state_of_token_t_holds_t_for_any_queries(T: int, seed: int) -> None:
    np.testing.assert_allclose(
        positions(absolute.model(T), T, seed), np.arange(1, T + 1), rtol=0, atol=2e-4
    )


def test_shorter_sequences_are_counted_too() -> None:
    np.testing.assert_allclose(positions(absolute.model(64), 9), np.arange(1, 10), atol=1e-5)


def test_attention_alone_gives_one_over_t() -> None:
    """The paper's first half: with an MLP of zeros, 1/t."""
    config = absolute.model(8)
    variables = absolute.variables(config)
    mlp = variables['params']['layers']['mlp']
    mlp['up'] = np.zeros_like(mlp['up'])
    output = apply(config, variables, jnp.asarray([[0, 5, 3, 3, 1, 7, 2, 6]]))
    found = output.hidden[0, :, absolute.POSITION]
    np.testing.assert_allclose(found, 1 / np.arange(1, 9), atol=1e-6)


def test_float32_counts_four_thousand_tokens() -> None:
    """Rounded; the order of N^2 of the reversed ramps would have ended it before."""
    found = positions(absolute.model(4096), 4096)
    np.testing.assert_array_equal(np.rint(found), np.arange(1, 4097))


def test_bfloat16_counts_a_few_tokens_and_then_no_more() -> None:
    found = np.rint(positions(absolute.model(512, dtype='bfloat16'), 512))
    wrong = np.flatnonzero(found != np.arange(1, 513))
    assert 64 <= wrong[0] <= 96


def test_beyond_the_longest_the_count_falls_behind() -> None:
    found = positions(absolute.model(16), 32)
    np.testing.assert_allclose(found[:16], np.arange(1, 17), atol=1e-5)
    behind = np.arange(20, 33) - found[19:]
    assert behind[0] > 0.5 and np.all(np.diff(behind) > 0)


def test_the_other_dimensions_stay_as_the_embeddings_have_them() -> None:
    config = absolute.model(8)
    variables = absolute.variables(config)
    tokens_T = np.array([0, 5, 3, 3, 1, 7, 2, 6])
    hidden = np.array(apply(config, variables, jnp.asarray(tokens_T[None])).hidden[0])
    expected = variables['params']['embedding'][tokens_T]
    np.testing.assert_array_equal(
        np.delete(hidden, absolute.POSITION, 1), np.delete(expected, absolute.POSITION, 1)
    )


@pytest.mark.parametrize(('field', 'arguments'), [('longest', (0,)), ('width', (4, 8, 2))])
def test_nothing_to_count_or_no_room_is_refused(field: str, arguments: tuple[int, ...]) -> None:
    with pytest.raises(FieldError, match=field):
        absolute.model(*arguments)
