"""RoPE, rotary position embedding (Su et al., 2021, arXiv 2104.09864)."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from nope.positions.base import Position
from nope.positions.scaling import Scaling, Unscaled
from nope.runtime.errors import FieldError, inside


@dataclasses.dataclass(frozen=True)
class RoPE(Position):
    """Rotation of pairs of dimensions by the angle position * base ** (-2j / R), pair j of R / 2.

    scaling: rule for the frequencies beyond the training length.
    dims: R, the head's first dimensions, which turn. None is all of them.
    interleaved: GPT-J's pairs (2j, 2j + 1). Else Llama's, (j, j + R / 2).
    share: p of p-RoPE (Barbero et al., 2024, arXiv 2410.06205). Only the floor(p R / 2) fastest
        pairs turn. They keep their frequencies among all R / 2, unlike those of `dims`.
    """

    base: float = 10_000.0
    scaling: Scaling = Unscaled()
    dims: int | None = None
    interleaved: bool = False
    share: float = 1.0

    two_sided = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.base) and self.base > 0):
            raise FieldError('base', self.base, 'it must be finite and above 0')
        if self.dims is not None and self.dims < 1:
            raise FieldError('dims', self.dims, 'accepted: an even number from 4, or None for all')
        if not 0 < self.share <= 1:
            raise FieldError('share', self.share, 'accepted: above 0, at most 1')

    @property
    def takes_positions(self) -> bool:
        return True

    @property
    def follows_length(self) -> bool:
        return self.scaling.follows_length

    def check(self, head_dim: int) -> None:
        dims = self.dims or head_dim
        if self.dims and (dims % 2 or not 4 <= dims <= head_dim):
            rule = f'accepted: an even number, at least 4 and at most head_dim, {head_dim}'
            raise FieldError('dims', dims, rule)
        if head_dim < 4 or dims % 2:
            raise FieldError('head_dim', head_dim, 'RoPE takes an even number, at least 4')
        if not self.turning_pairs(head_dim):
            raise FieldError('share', self.share, f'none of {dims // 2} pairs of dimensions turns')
        with inside('scaling'):
            self.scaling.check(dims)
        self.scaling.check_base(self.base)
        self._check_scaled_base(dims)

    def _check_scaled_base(self, dims: int) -> None:
        """FieldError for a base that float32 does not hold, as it is scaled for so many
        dimensions."""
        found, held = self.scaling.scaled_base(self.base, dims), np.finfo(np.float32)
        least, most = float(held.tiny), float(held.max)
        if not least <= found <= most:
            rule = f'scaled it is {found:g}; accepted in float32: {least:g} to {most:g}'
            raise FieldError('base', self.base, rule)

    def turning_pairs(self, head_dim: int) -> int:
        """Number of pairs of dimensions that turn, floor(p R / 2)."""
        return int(self.share * (self.dims or head_dim) // 2)

    def inverse_frequencies(self, head_dim: int, length: int | jax.Array) -> jax.Array:
        """Angles per position, [R/2] float32, for a sequence of `length` tokens."""
        frequencies = self.scaling.inverse_frequencies(self.base, self.dims or head_dim, length)
        if self.share == 1:
            return frequencies
        turning = self.turning_pairs(head_dim)
        return jnp.where(np.arange(frequencies.shape[0]) < turning, frequencies, 0.0)

    def encode(
        self, q_BTNH: jax.Array, k_BTKH: jax.Array, positions_BT: jax.Array, length: int | jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Rotates q and k (any float dtype; angles and products in float32)."""
        inverse = self.inverse_frequencies(q_BTNH.shape[-1], length)
        angles_BTR = positions_BT[..., None].astype(jnp.float32) * inverse
        cos, sin = jnp.cos(angles_BTR)[:, :, None], jnp.sin(angles_BTR)[:, :, None]
        factor = self.scaling.attention_factor
        if factor is not None:
            cos, sin = cos * factor, sin * factor
        return self._rotate(q_BTNH, cos, sin), self._rotate(k_BTKH, cos, sin)

    def _rotate(self, x_BTNH: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
        dims = self.dims or x_BTNH.shape[-1]
        selected = x_BTNH[..., :dims].astype(jnp.float32)
        rotated = (_rotate_neighbours if self.interleaved else _rotate_halves)(selected, cos, sin)
        if dims == x_BTNH.shape[-1]:
            return rotated.astype(x_BTNH.dtype)
        return jnp.concatenate([rotated.astype(x_BTNH.dtype), x_BTNH[..., dims:]], axis=-1)

    def describe(self) -> str:
        partly = '' if self.share == 1 else f', {self.share:g} of pairs'
        return f'RoPE{partly}{self.scaling.describe()}'


def _rotate_halves(x_BTNR: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    first, second = jnp.split(x_BTNR, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _rotate_neighbours(x_BTNR: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    first, second = x_BTNR[..., 0::2], x_BTNR[..., 1::2]
    rotated = jnp.stack([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return rotated.reshape(x_BTNR.shape)
