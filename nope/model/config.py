"""What a model is, as one frozen value checked when it is made."""

from __future__ import annotations

import dataclasses
from typing import Any

from nope.model import lam
from nope.positions import NoPE, Position

DTYPES = ('float32', 'bfloat16')
REMAT = ('none', 'full', 'dots')


def execution_detail(default: Any) -> Any:
    """A field that changes speed or memory, not results: it is left out of a run's identity."""
    return dataclasses.field(default=default, metadata={'identity': False})


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """A decoder of TinyLlama's shape: RMSNorm, SwiGLU, grouped-query attention, no biases.

    heads, kv_heads: N and K; query head n reads key-value head n // (N / K).
    dtype: of the computation; parameters are float32 always.
    remat: what the backward pass recomputes: nothing, everything but the matrix products
        ('dots'), or whole layers ('full').
    attention: name of the attention implementation; '' lets `nope.attention` choose.
    unroll: layers per iteration of the scan over layers (0: all of them, no loop).
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    mlp_width: int
    vocab_size: int
    head_dim: int
    position: Position = NoPE()
    lam: lam.Form = lam.Constant()
    tied_head: bool = False
    norm_epsilon: float = 1e-5
    dtype: str = 'float32'
    remat: str = execution_detail('none')
    attention: str = execution_detail('')
    unroll: int = execution_detail(1)

    def __post_init__(self) -> None:
        for name in ('layers', 'width', 'heads', 'kv_heads', 'mlp_width', 'vocab_size', 'head_dim'):
            if getattr(self, name) < 1:
                raise ValueError(f'model.{name} is {getattr(self, name)}; it must be at least 1')
        if self.heads % self.kv_heads:
            raise ValueError(
                f'model.heads is {self.heads} and model.kv_heads is {self.kv_heads}; '
                'heads must be a multiple of kv_heads'
            )
        if (self.head_dim % 2 or self.head_dim < 4) and not isinstance(self.position, NoPE):
            raise ValueError(
                f'model.head_dim is {self.head_dim}; rotary positions turn pairs of dimensions '
                'and need an even one, at least 4'
            )
        _one_of('model.dtype', self.dtype, DTYPES)
        _one_of('model.remat', self.remat, REMAT)
        if not 0 <= self.unroll <= self.layers:
            raise ValueError(
                f'model.unroll is {self.unroll}; accepted is 0 to model.layers = {self.layers}'
            )

    @property
    def parameters(self) -> int:
        """Number of trained parameters (lambda not among them)."""
        attention = self.width * self.head_dim * 2 * (self.heads + self.kv_heads)
        block = attention + 3 * self.width * self.mlp_width + 2 * self.width
        embeddings = self.vocab_size * self.width * (1 if self.tied_head else 2)
        return self.layers * block + embeddings + self.width

    def training_flops_per_token(self, length: int) -> float:
        """FLOPs of a training step per token: 6 per weight in a matrix product, and the
        causal half of attention's two products, forward and backward."""
        weights = self.parameters - self.layers * 2 * self.width - self.width
        if not self.tied_head:
            weights -= self.vocab_size * self.width  # the embedding is a look-up
        return 6.0 * weights + 6.0 * self.layers * length * self.heads * self.head_dim


def _one_of(field: str, value: str, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise ValueError(f'{field} is {value!r}; accepted: {", ".join(accepted)}')
