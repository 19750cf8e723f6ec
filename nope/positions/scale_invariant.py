"""Scale-invariant attention: logits sharpened and lowered by distance, over p-RoPE."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from nope.attention import ScaleInvariantBias
from nope.positions.base import Position
from nope.positions.rope import RoPE
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class ScaleInvariant(Position):
    """a_t q_i . k_j / sqrt(H) + m_t at distance t = i - j, with a_t^2 = 1 + 2 ln(t / tau + 1) and
    m_t = -2 ln(t / tau + 1). Queries and keys are under p-RoPE (Anson et al., 2025, arXiv
    2505.17083): the weight of 10 to 100 tokens ago stays about that of 100 to 1,000 ago.

    Trained at 4,096 tokens their 162 million parameters (with QK-norm) have losses of 3.244, 3.235
    and 3.247 nats at 4,096, 16,384 and 65,536; RoPE 3.261, 3.936 and 5.260. Lambda multiplies q,
    and so a_t.

    tau: tokens up to which logits are about what they were.
    share, base: of the p-RoPE (`RoPE`); a share of 0 turns nothing. The authors' RoPE pairs
        reach a longest wavelength of 2 pi 1,024, which half of the pairs do at a base of 1,024 to
        the power (H / 2) / (H / 4 - 1): 1.6e6 at H = 128. Where the training length is far below
        that, so should the longest wavelength be.
    """

    tau: float = 10.0
    share: float = 0.5
    base: float = 10_000.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tau) and self.tau > 0):
            raise FieldError('tau', self.tau, 'it must be finite and above 0')
        if not 0 <= self.share <= 1:
            raise FieldError('share', self.share, 'accepted: 0 to 1')
        RoPE(self.base)  # checks the base

    def check(self, head_dim: int) -> None:
        if self.share:
            self._rope.check(head_dim)

    def encode(
        self, q_BTNH: jax.Array, k_BTKH: jax.Array, positions_BT: jax.Array, length: int | jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Queries and keys whose fastest pairs are rotated."""
        if not self.share:
            return q_BTNH, k_BTKH
        return self._rope.encode(q_BTNH, k_BTKH, positions_BT, length)

    def bias(self, heads: int, table: jax.Array | None) -> ScaleInvariantBias:
        return ScaleInvariantBias(jnp.ones(heads, jnp.float32), self.tau)

    def describe(self) -> str:
        turning = f'{self.share:g} of pairs' if self.share else 'no rotation'
        return f'scale-invariant, {turning}'

    @property
    def _rope(self) -> RoPE:
        return RoPE(self.base, share=self.share)
