"""lambda: one softmax temperature per head, and the forms it takes.

Stored is a coefficient per layer and head, [L, N] float32, alone in the collection
`lam`. A form turns coefficients and the sequence length n into the multiples p of
1/sqrt(H) that scale the queries: softmax_j(p_h / sqrt(H) * q_i . k_j). The same p holds
for every position of a sequence. A new form is one class here and a line in `FORMS`.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class Constant:
    """p_h, whatever the length: UniformScale when all are equal, HeadScale otherwise.

    arXiv 2404.12224, equations 3 and 4.
    """

    neutral = 1.0  # the coefficient that leaves the base model as it is
    follows_length = False

    def multiples(self, coefficients_LN: jax.Array, length: int | jax.Array) -> jax.Array:
        del length
        return coefficients_LN


@dataclasses.dataclass(frozen=True)
class LogLength:
    """p_h(n) = 1 + a_h * ln(max(n / train_length, 1)): exactly the base model up to n = L."""

    train_length: int
    neutral = 0.0
    follows_length = True

    def multiples(self, coefficients_LN: jax.Array, length: int | jax.Array) -> jax.Array:
        relative = jnp.asarray(length, jnp.float32) / self.train_length
        return 1.0 + coefficients_LN * jnp.log(jnp.maximum(relative, 1.0))


Form = Constant | LogLength
FORMS: dict[str, type[Form]] = {'constant': Constant, 'log_length': LogLength}


def neutral(form: Form, layers: int, heads: int) -> jax.Array:
    """Coefficients [L, N] float32 that leave the base model unchanged."""
    return jnp.full((layers, heads), form.neutral, jnp.float32)


def check_shape(lam_LN: jax.Array, layers: int, heads: int) -> None:
    """ValueError unless lam is [layers, heads] (a wrong shape would broadcast silently)."""
    if tuple(lam_LN.shape) != (layers, heads):
        raise ValueError(
            f'lam has shape {tuple(lam_LN.shape)}; this model has {layers} layers of {heads} '
            f'heads and takes ({layers}, {heads})'
        )


def scale_queries(
    q_BTNH: jax.Array, multiples_N: jax.Array, softmax_scale: float = 0.0
) -> jax.Array:
    """q * p_h / sqrt(H), in float32, cast back to q's dtype (kernels then run with scale 1).

    multiples_N: p_h, [N], or [B, N]. softmax_scale: in place of 1 / sqrt(H), unless it is 0.
    """
    if softmax_scale:
        factor_N = multiples_N * softmax_scale
    else:
        factor_N = multiples_N / jnp.sqrt(jnp.float32(q_BTNH.shape[-1]))
    return (q_BTNH.astype(jnp.float32) * factor_N[..., None, :, None]).astype(q_BTNH.dtype)
