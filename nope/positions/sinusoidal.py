"""Sinusoids added to the embeddings (Vaswani et al., 2017, arXiv 1706.03762)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nope.positions.base import Position
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class Sinusoidal(Position):
    """sin(t w_i) and cos(t w_i), w_i = base ** (-2i / D), t from 0: all sines and then all cosines,
    as in arXiv 2305.19466."""

    base: float = 10_000.0

    two_sided = True

    def __post_init__(self) -> None:
        if not 0 < self.base < float('inf'):
            raise FieldError('base', self.base, 'it must be finite and above 0')

    @property
    def takes_positions(self) -> bool:
        return True

    def vectors(self, positions_BT: jax.Array, width: int) -> jax.Array:
        """[B, T, D] float32; an odd last dimension has no cosine."""
        inverse = np.float32(self.base ** (-np.arange(0, width, 2) / width))
        angles = positions_BT[..., None].astype(jnp.float32) * inverse
        return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)[..., :width]

    def embed(
        self, x_BTD: jax.Array, positions_BT: jax.Array, table: jax.Array | None
    ) -> jax.Array:
        return x_BTD + self.vectors(positions_BT, x_BTD.shape[-1]).astype(x_BTD.dtype)

    def describe(self) -> str:
        return 'sinusoidal'
