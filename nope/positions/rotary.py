"""Rotary position embedding, half-split pairing (dimension j turns with j + H/2)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class Unscaled:
    """The base of pre-training at every length."""

    def base_at(self, base: float, head_dim: int, length: int | jax.Array) -> jax.Array:
        del head_dim, length
        return jnp.float32(base)

    def describe(self) -> str:
        return ''


@dataclasses.dataclass(frozen=True)
class DynamicNTK:
    """NTK-aware scaling with a base that follows the length of the sequence.

    b' = b * (factor * n / L - (factor - 1)) ** (H / (H - 2)) for n > L, else b, with
    n the length of the whole sequence (in generation: the final length) and L the
    training length. All positions of a sequence share one b'. The growing cache of
    older libraries, which mixes bases inside one sequence, is not copied.
    """

    factor: float
    train_length: int

    def base_at(self, base: float, head_dim: int, length: int | jax.Array) -> jax.Array:
        relative = jnp.asarray(length, jnp.float32) / self.train_length
        stretch = jnp.maximum(self.factor * relative - (self.factor - 1), 1.0)
        return base * stretch ** (head_dim / (head_dim - 2))

    def describe(self) -> str:
        return f', dynamic NTK x{self.factor:g}'


Scaling = Unscaled | DynamicNTK


@dataclasses.dataclass(frozen=True)
class Rotary:
    """Turns the pair (x_j, x_{j+H/2}) by the angle position * base ** (-2j / H)."""

    base: float = 10_000.0
    scaling: Scaling = Unscaled()

    def inverse_frequencies(self, head_dim: int, length: int | jax.Array) -> jax.Array:
        """Angles per position, [H/2] float32, for a sequence of `length` tokens."""
        exponents = jnp.arange(0, head_dim, 2, dtype=jnp.float32) / head_dim
        return jnp.power(self.scaling.base_at(self.base, head_dim, length), -exponents)

    def encode(
        self, q_BTNH: jax.Array, k_BTKH: jax.Array, positions_BT: jax.Array, length: int | jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Rotates q and k (any float dtype; angles and products in float32).

        positions_BT: int32, 0-based, [B, T] or [1, T]. length: tokens in the sequence.
        """
        inverse = self.inverse_frequencies(q_BTNH.shape[-1], length)
        angles_BTH = positions_BT[..., None].astype(jnp.float32) * inverse
        cos, sin = jnp.cos(angles_BTH)[:, :, None], jnp.sin(angles_BTH)[:, :, None]
        return _rotate(q_BTNH, cos, sin), _rotate(k_BTKH, cos, sin)

    def describe(self) -> str:
        return f'rotary{self.scaling.describe()}'


def _rotate(x_BTNH: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    first, second = jnp.split(x_BTNH.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x_BTNH.dtype)
