"""No position encoding: order reaches the model through the causal mask alone."""

from __future__ import annotations

import dataclasses

import jax


@dataclasses.dataclass(frozen=True)
class NoPE:
    """Queries and keys are used as projected (arXiv 2404.12224, section 2)."""

    def encode(
        self, q_BTNH: jax.Array, k_BTKH: jax.Array, positions_BT: jax.Array, length: int | jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Returns q and k unchanged."""
        del positions_BT, length
        return q_BTNH, k_BTKH

    def describe(self) -> str:
        return 'none'
