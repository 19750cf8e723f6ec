"""Entropy matching: a loss of lambda that compares attention at two lengths, without labels."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nope.data.batch import Batch
from nope.model import ModelConfig, apply, lam
from nope.variables import Variables, lam_of, with_lam


def entropy_gap(
    config: ModelConfig,
    variables: Variables,
    batch: Batch,
    train_length: int,
    mean_LN: jax.Array | None = None,
) -> jax.Array:
    """Mean squared difference of each head's entropy at n and at L tokens, nats^2, float32 scalar.

    mean_h (H_h(n; p_h) - H_h(L; 1))^2 over the heads in which lambda acts. H_h is the head's mean
    attention entropy over the last half of each window. p_h is its multiplier. H_h(L; 1) is that of
    the windows' first L tokens without lambda, and a constant: no gradient passes it. Targets of
    the batch are not used. In a batch with weights a window ends before a row's first target of
    weight above 0. It is the prompt of a task's example, and no head that counts has seen the
    answer. n is then a number for each row.

    batch, errors: as `head_gaps`. mean_LN: differences of the whole batch that `batch` is a part
    of. The parts' values and gradients then average to those of the whole; the mean of their own
    squares would not.
    """
    gap_LN = head_gaps(config, variables, batch, train_length)
    if mean_LN is None:
        squared_LN = jnp.square(gap_LN)
    else:
        moved_LN = gap_LN - jax.lax.stop_gradient(gap_LN)
        squared_LN = jnp.square(mean_LN) + 2 * mean_LN * moved_LN
    acts_LN = config.heads_with_lam
    return jnp.sum(jnp.where(acts_LN, squared_LN, 0.0)) / np.sum(acts_LN, dtype=np.float32)


def row_entropies(config: ModelConfig, entropy_LBNT: jax.Array) -> jax.Array:
    """Attention entropy of each row, nats [B]: mean over positions and heads without position."""
    acts_LN = config.heads_without_position
    mean_LBN = jnp.mean(entropy_LBNT, axis=3)
    found_LBN = jnp.where(acts_LN[:, None], mean_LBN, 0.0)
    return jnp.sum(found_LBN, axis=(0, 2)) / np.sum(acts_LN, dtype=np.float32)


def head_gaps(
    config: ModelConfig, variables: Variables, batch: Batch, train_length: int
) -> jax.Array:
    """H_h(n; p_h) - H_h(L; 1) of every head, float32 [L, N].

    batch: tokens [B, n] with n >= L. Prompts have L tokens at least, which is not checked.
    ValueError for shorter rows, and for a batch with segments: its documents have other lengths.
    """
    n = batch.tokens.shape[1]
    if n < train_length:
        raise ValueError(f'tokens has {n} tokens; accepted: train_length, {train_length}, or more')
    if batch.segments is not None:
        raise ValueError('segments: entropy is matched over whole windows, without documents apart')
    sizes_B = None
    if batch.weights is not None:
        # A prompt ends at the token that predicts its first target of weight above 0.
        counts_BT = batch.weights > 0
        sizes_B = jnp.argmax(counts_BT, axis=-1) + 1
        sizes_B = jnp.where(jnp.any(counts_BT, axis=-1), sizes_B, counts_BT.shape[-1])
    layers, heads = lam_of(variables).shape[:2]
    base = dataclasses.replace(config, lam=lam.Constant())
    wanted_LN = _late_entropy(
        base,
        with_lam(variables, jnp.ones((layers, heads), jnp.float32)),
        batch.tokens[:, :train_length],
        None if sizes_B is None else jnp.minimum(sizes_B, train_length),
    )
    found_LN = _late_entropy(config, variables, batch.tokens, sizes_B)
    return found_LN - jax.lax.stop_gradient(wanted_LN)


def _late_entropy(
    config: ModelConfig, variables: Variables, tokens_BT: jax.Array, sizes_B: jax.Array | None
) -> jax.Array:
    """Entropy of every head, mean over rows and the last half of positions, float32 [L, N].
    sizes_B: the tokens that a row has; None for all."""
    entropy_LBNT = apply(config, variables, tokens_BT, entropy=True).entropy
    assert entropy_LBNT is not None
    length = tokens_BT.shape[1]
    if sizes_B is None:
        return jnp.mean(entropy_LBNT[..., length // 2 :], axis=(1, 3))
    at_T, size_B1 = jnp.arange(length), sizes_B[:, None]
    late_BT = (at_T >= size_B1 // 2) & (at_T < size_B1)
    mean_LBN = jnp.mean(entropy_LBNT, axis=-1, where=late_BT[None, :, None, :])
    return jnp.mean(mean_LBN, axis=1)
