"""Products of arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def exact(dtype: jnp.dtype) -> str | None:
    """The `precision` of a product whose factors are not rounded: accelerators take float32 as tf32
    or bfloat16 unless told."""
    return 'highest' if dtype == jnp.float32 else None


def exact_einsum(spec: str, x: jax.Array, y: jax.Array) -> jax.Array:
    """float32 sums of exact products."""
    return jnp.einsum(spec, x, y, precision=exact(x.dtype), preferred_element_type=jnp.float32)
