"""Products of arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def exact_einsum(spec: str, x: jax.Array, y: jax.Array) -> jax.Array:
    """float32 sums of exact products, also of float32, which accelerators round unless told."""
    exact = 'highest' if x.dtype == jnp.float32 else None
    return jnp.einsum(spec, x, y, precision=exact, preferred_element_type=jnp.float32)
