"""Factor and bias by distance of scale-invariant attention."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp

from nope.attention.bias.base import Bias, check_by_head, precise


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=('strengths_N',), meta_fields=('tau',)
)
@dataclasses.dataclass(frozen=True)
class ScaleInvariantBias(Bias):
    """a_t q . k + m_t at distance t, with a_t^2 = 1 + 2 strength_n ln(t / tau + 1) and
    m_t = 1 - a_t^2 (Anson et al., 2025, arXiv:2505.17083, equations 16a and 16b under
    a_0 = 1 and m_0 = 0): under standard normal products each stretch of keys from t to c t has the
    same expected weight.

    strengths_N: float, [N], 0 or more; 1 in the paper. They are constants: no gradient passes to
    them. tau: tokens, above 0.
    """

    strengths_N: jax.Array
    tau: float = 10.0

    @property
    def heads(self) -> int:
        return jnp.shape(self.strengths_N)[0]

    def check(self) -> None:
        """Raises ValueError for strengths that are no vector, and for a tau that is not above 0."""
        check_by_head('strengths_N', self.strengths_N)
        if not self.tau > 0:
            raise ValueError(f'bias.tau is {self.tau}; accepted: above 0')

    def by_distance(self, distance_D: jax.Array) -> jax.Array:
        """m at each of the distances, float32 [N, D] (float64 for such parameters)."""
        return -2 * self._growth(distance_D)

    def factors_by_distance(self, distance_D: jax.Array) -> jax.Array:
        """a at each of the distances, float32 [N, D] (float64 for such parameters)."""
        return jnp.sqrt(1 + 2 * self._growth(distance_D))

    def _growth(self, distance_D: jax.Array) -> jax.Array:
        strengths_N = jax.lax.stop_gradient(precise(self.strengths_N))
        return strengths_N[:, None] * jnp.log1p(
            jnp.abs(distance_D).astype(strengths_N.dtype) / self.tau
        )
