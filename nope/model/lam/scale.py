"""Scale of the logits: multipliers of 1 / sqrt(H) from every source, and the queries under them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

GAMMA_RANGE = 2.0  # of the power of ln(i + 1), on both sides of 0
# Of e^4 to e^0, and the entropy in nats up to which nothing is sharpened.
ENTROPY_POLYNOMIAL = -0.037, 0.481, -2.3, 4.917, -1.791
ENTROPY_THRESHOLD = 0.5


def times(first: jax.Array, second: jax.Array) -> jax.Array:
    """Product of two sources' multipliers, each [N], [B, N] or by position [B, T, N]."""
    by_position = max(first.ndim, second.ndim) == 3
    first, second = (p[:, None] if by_position and p.ndim == 2 else p for p in (first, second))
    return first * second


def adaptive_multipliers(
    beta_BTN: jax.Array, gamma_BTN: jax.Array, positions_BT: jax.Array
) -> jax.Array:
    """1 + softplus(beta) (ln(i + 1))^(2 tanh(gamma)) of token i, counted from 1, float32 [B, T, N].

    ASEntmax (Vasylenko et al., 2025, arXiv 2506.16640) writes delta + beta (ln n)^gamma with n the
    length of the context. This follows its code: delta = 1 and n = i + 1, with a logarithm above 0.
    """
    log_BT1 = jnp.log(positions_BT.astype(jnp.float32) + 2.0)[..., None]
    return 1.0 + jax.nn.softplus(beta_BTN) * log_BT1 ** (GAMMA_RANGE * jnp.tanh(gamma_BTN))


def entropy_multipliers(entropy_BNT: jax.Array) -> jax.Array:
    """Multipliers of logits by the entropy of their softmax, float32 [B, T, N], at least 1.

    Velickovic et al., 2024 (arXiv 2410.01104), adaptive temperature: with e in nats,

        max(1, -0.037 e^4 + 0.481 e^3 - 2.3 e^2 + 4.917 e - 1.791)    where e > 0.5

    and 1 elsewhere; their code names it beta = 1 / theta. It is above 1 between 0.85 and 5.94 nats
    alone: rows that spread over more than about 380 keys stay as they are. entropy_BNT: float32.
    """
    fitted_BNT = jnp.polyval(jnp.asarray(ENTROPY_POLYNOMIAL, jnp.float32), entropy_BNT)
    sharpened_BNT = jnp.maximum(fitted_BNT, 1.0)
    return jnp.where(entropy_BNT > ENTROPY_THRESHOLD, sharpened_BNT, 1.0).swapaxes(1, 2)


def scale_queries(
    q_BTNH: Float[Array, 'B T N H'],
    multipliers_N: Float32[Array, '*BT N'],
    softmax_scale: float | None = None,
) -> Float[Array, 'B T N H']:
    """q * p_h / sqrt(H), in float32, cast back to q's dtype (kernels then run with scale 1).

    multipliers_N: p_h, [N] for all rows, [B, N] by row, or [B, T, N] by position.
    softmax_scale: takes the place of 1 / sqrt(H), unless it is None.
    """
    if softmax_scale is not None:
        factor_N = multipliers_N * softmax_scale
    else:
        factor_N = multipliers_N / jnp.sqrt(jnp.float32(q_BTNH.shape[-1]))
    scaled_BTNH = q_BTNH.astype(jnp.float32)
    if factor_N.ndim == 3:
        scaled_BTNH *= factor_N[..., None]
    else:
        scaled_BTNH *= factor_N[..., None, :, None]
    return scaled_BTNH.astype(q_BTNH.dtype)
