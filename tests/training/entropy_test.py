"""Entropy matching: its loss, its gradient, and the step of a search by it."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.data import Batch
from nope.model.lam import LogLength
from nope.positions import RoPE, Split
from nope.training.entropy import entropy_gap
from nope.training.optim import OptimizerConfig
from nope.training.state import fresh_state
from nope.training.step import make_step
from nope.variables import lam_of, with_lam
from tests import tiny
from tests.model.programs import run

L, N = 8, 24
CONFIG = tiny.model(lam=LogLength(train_length=L), attention=None)
BLOCKS = tiny.tokens(3, N + 1)
BATCH = Batch.of_blocks(BLOCKS)
SEARCH = OptimizerConfig(
    learning_rate=0.05, trains='lam', schedule='linear_tail', decay_steps=1000, entropy_length=L
)
# Logits that differ, so that entropies follow lambda.
SHARP = jax.tree_util.tree_map_with_path(
    lambda path, leaf: 6 * leaf if path[-1].key == 'query' else leaf, tiny.variables(CONFIG)
)


def gap(config, variables, batch=BATCH):
    return _gap(config)(variables, batch)


@functools.cache
def _gap(config):
    loss = functools.partial(entropy_gap, config, train_length=L)
    return jax.jit(jax.value_and_grad(lambda variables, batch: loss(variables, batch)))


def late(config, variables, length: int) -> np.ndarray:
    """Mean entropies of the last half of windows of that length, [L, N]."""
    entropy_LBNT = run(config, variables, BLOCKS[:, :length]).entropy
    return np.asarray(entropy_LBNT)[..., length // 2 :].mean(axis=(1, 3))


def test_the_loss_is_the_squared_difference_of_each_head() -> None:
    """At L with multiplier 1, which the form has up to L whatever its coefficients."""
    variables = with_lam(SHARP, jnp.full((2, 4), 0.7))
    found, _ = gap(CONFIG, variables)
    wanted_LN = late(CONFIG, variables, L) - late(CONFIG, variables, N)
    assert np.all(np.abs(wanted_LN) > 0.02)
    np.testing.assert_allclose(found, np.mean(wanted_LN**2), rtol=1e-5)


def test_heads_in_which_lambda_does_not_act_do_not_count() -> None:
    config = dataclasses.replace(CONFIG, position=Split(RoPE()), lam_layers='nope')
    found, gradient = gap(config, SHARP)
    gap_LN = late(config, SHARP, L) - late(config, SHARP, N)
    acts_LN = config.heads_without_position
    np.testing.assert_allclose(found, np.mean(gap_LN[acts_LN] ** 2), rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(lam_of(gradient)) != 0, acts_LN)


def test_the_gradient_is_the_slope_of_the_entropies_at_n_alone() -> None:
    """What is matched is a constant, though parameters move it too."""
    variables = with_lam(SHARP, jnp.full((2, 4), 0.3))
    _, gradient = gap(CONFIG, variables)
    step_LN = np.zeros((2, 4), np.float32)
    step_LN[0, 1] = 0.02
    ends = [gap(CONFIG, with_lam(SHARP, 0.3 + side * step_LN))[0] for side in (1, -1)]
    np.testing.assert_allclose(lam_of(gradient)[0, 1], (ends[0] - ends[1]) / 0.04, rtol=2e-2)


def test_no_label_is_read() -> None:
    """Neither a target nor a weight of 0 changes anything."""
    other = BATCH._replace(targets=(BATCH.targets + 1) % tiny.MODEL.vocab_size)
    weighted = BATCH._replace(weights=np.zeros((3, N), np.float32))
    found = gap(CONFIG, SHARP)
    tiny.assert_same(gap(CONFIG, SHARP, other), found)
    tiny.assert_close(gap(CONFIG, SHARP, weighted), found, rtol=1e-5, atol=1e-6)


PROMPTS = 10, 15, N  # tokens of each row; an answer of two tokens and padding behind them


def answered(answer: int) -> Batch:
    batch = jax.tree.map(np.array, BATCH)
    weights = np.zeros((3, N), np.float32)
    for row, size in enumerate(PROMPTS):
        weights[row, size - 1 : size + 1] = 1
        batch.tokens[row, size:], batch.targets[row, size - 1 :] = answer, answer
    return batch._replace(weights=weights)


def test_of_examples_with_answers_the_prompts_are_compared() -> None:
    """Each row's mean over the last half of its prompt, and of its first L tokens. Answers change
    neither values nor gradients."""
    found = gap(CONFIG, SHARP, answered(3))
    tiny.assert_same(gap(CONFIG, SHARP, answered(5)), found)
    rows_LN = []
    for row, size in enumerate(PROMPTS):
        entropy_LNT = run(CONFIG, SHARP, BLOCKS[row : row + 1, :N]).entropy[:, 0]
        rows_LN.append(np.asarray(entropy_LNT)[..., size // 2 : size].mean(axis=-1))
    wanted_LN = np.mean(rows_LN, axis=0) - late(CONFIG, SHARP, L)
    np.testing.assert_allclose(found[0], np.mean(wanted_LN**2), rtol=1e-5)
    assert np.all(np.asarray(lam_of(found[1])) != 0)


def test_a_search_brings_entropies_back() -> None:
    """Lambda alone moves, upwards, and the loss that steps report falls."""
    step = jax.jit(make_step(CONFIG, SEARCH))
    state, frozen = fresh_state(SHARP, SEARCH, tiny.mesh())
    losses = []
    for _ in range(30):
        state, metrics = step(state, frozen, jax.tree.map(lambda array: array[None], BATCH))
        losses.append(float(metrics['loss']))
    assert state.trained.keys() == {'lam'}
    np.testing.assert_allclose(losses[0], gap(CONFIG, SHARP)[0], rtol=1e-5)
    assert losses[-1] < 0.3 * losses[0]
    assert np.all(np.asarray(lam_of(state.trained)) > 0.1)


def in_parts(parts: int, rows: np.ndarray) -> jax.Array:
    return jnp.reshape(rows, (parts, len(rows) // parts, *rows.shape[1:]))


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('micro_batches', [2, pytest.param(4, marks=pytest.mark.slow)])
def test_micro_batches_make_one_batch(micro_batches: int, weighted: bool) -> None:
    """The square of a mean over all rows, and not the mean of squares; of prompts too."""
    batch = Batch.of_blocks(tiny.tokens(4, N + 1))
    if weighted:
        weights = np.arange(N) >= np.array([[9], [14], [20], [23]])
        batch = batch._replace(weights=weights.astype(np.float32))
    variables = with_lam(SHARP, jnp.full((2, 4), 0.3))
    found = []
    for parts in (1, micro_batches):
        state, frozen = fresh_state(variables, SEARCH, tiny.mesh())
        split = jax.tree.map(functools.partial(in_parts, parts), batch)
        state, metrics = jax.jit(make_step(CONFIG, SEARCH))(state, frozen, split)
        found.append((metrics['loss'], metrics['grad_norm'], lam_of(state.trained)))
    tiny.assert_close(*found, rtol=1e-4)


def test_short_windows_and_documents_apart_are_refused() -> None:
    with pytest.raises(ValueError, match='tokens has 7 tokens; accepted: train_length, 8, or more'):
        entropy_gap(CONFIG, SHARP, BATCH.first(7), L)
    apart = BATCH._replace(segments=np.ones((3, N), np.int32))
    with pytest.raises(ValueError, match='segments: entropy is matched over whole windows'):
        entropy_gap(CONFIG, SHARP, apart, L)


def test_weights_are_not_trained_by_entropy() -> None:
    with pytest.raises(
        ValueError, match=r"^entropy_length is 8; accepted: .* \('all' does\), or None"
    ):
        OptimizerConfig(learning_rate=0.1, trains='all', entropy_length=8)
