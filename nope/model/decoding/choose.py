"""Choosing the next token: the most likely one, or a sample."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class Sampling:
    """temperature: 0 takes the most likely token; otherwise logits are divided by it and sampled.

    With top_k above 0 only the k most likely tokens count. With top_p below 1 only the likeliest
    tokens of this joint probability count (Holtzman et al., 2020, arXiv 1904.09751).
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f'temperature is {self.temperature}; it must be finite, 0 or more')
        if self.top_k < 0:
            raise ValueError(f'top_k is {self.top_k}; it must be 0 (all tokens) or more')
        if not 0 < self.top_p <= 1:
            raise ValueError(f'top_p is {self.top_p}; it lies in (0, 1]')


def choose(sampling: Sampling, logits_BV: jax.Array, keys_B: jax.Array) -> jax.Array:
    """int32 [B]. keys_B: a random key for every row, so that rows do not depend on each other."""
    if sampling.temperature == 0:
        return jnp.argmax(logits_BV, axis=-1).astype(jnp.int32)
    kept_BV = keep(sampling, logits_BV / sampling.temperature)
    return jax.vmap(jax.random.categorical)(keys_B, kept_BV).astype(jnp.int32)


def invalid(logits: jax.Array) -> jax.Array:
    """Whether logits [..., V] are of no distribution, NaN or infinity among them; bool [...]."""
    return ~jnp.all(logits < jnp.inf, axis=-1)


def keep(sampling: Sampling, logits_BV: jax.Array) -> jax.Array:
    """The logits, minus infinity where `top_k` and then `top_p` leave a token out.

    Tokens as likely as the last one that top_k keeps are kept too; the most likely token always
    is.
    """
    V = logits_BV.shape[-1]
    if 0 < sampling.top_k < V:
        least_B1 = jax.lax.top_k(logits_BV, sampling.top_k)[0][:, -1:]
        logits_BV = jnp.where(logits_BV < least_B1, -jnp.inf, logits_BV)
    if sampling.top_p < 1:
        order_BV = jnp.argsort(logits_BV, axis=-1, descending=True)
        sorted_BV = jnp.take_along_axis(jax.nn.softmax(logits_BV), order_BV, axis=-1)
        before_BV = jnp.cumsum(sorted_BV, axis=-1) - sorted_BV
        rank_BV = jnp.argsort(order_BV, axis=-1)
        out_BV = jnp.take_along_axis(before_BV >= sampling.top_p, rank_BV, axis=-1)
        logits_BV = jnp.where(out_BV, -jnp.inf, logits_BV)
    return logits_BV
