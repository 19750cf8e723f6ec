"""Model configuration: one frozen value, checked when it is made."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nope.model import checks, lam
from nope.model.fields import ModelFields
from nope.model.kinds import LayerKind
from nope.positions import NoPE, Position


@dataclasses.dataclass(frozen=True)
class ModelConfig(ModelFields):
    """A decoder by its fields, those of `ModelFields`.

    Raises FieldError for a value out of range, and for values that do not go together.
    """

    def __post_init__(self) -> None:
        checks.check(self)

    def of_layer(self, layer: int) -> ModelConfig:
        """The model with the sizes of that layer as its own; its `kinds` are in the same order."""
        kind = self.layer_kinds[layer]
        return _of_kind(self, kind) if kind.has_own_arrays else self

    def with_position(self, position: Position, *, limited: bool = True) -> ModelConfig:
        """The same model with another encoding in every layer that has one (and everywhere, where
        none has). Without an encoding there are no random positions either. limited: also in
        layers with a window or chunks."""
        if self.position_range is not None and position == NoPE():
            whole = dataclasses.replace(self, position_range=None)
            return whole.with_position(position, limited=limited)
        if not self.pattern:
            kept = self.window is not None and not limited
            return self if kept else dataclasses.replace(self, position=position)
        checks.check_position(self, LayerKind(position), 'position')
        everywhere = all(isinstance(kind.position, NoPE) for kind in self.pattern)
        kinds = (
            dataclasses.replace(kind, position=position)
            if kind.attends
            and (everywhere or not isinstance(kind.position, NoPE))
            and (limited or not kind.is_limited)
            else kind
            for kind in self.pattern
        )
        return dataclasses.replace(self, pattern=tuple(kinds))

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        """p_h of every layer and head of one sequence, float32: 1 where lambda does not act.

        The shape is [L, N], or [L, T, N] where lambda follows the position.

        coefficients_LN: float32, [L, N, C] for laws with C > 1 numbers a head.
        length: tokens in the sequence.
        positions_T: int32, 0-based positions of the queries. ValueError where they are missing.
        """
        if self.lam.follows_position and positions_T is None:
            raise ValueError(
                f'lambda of the law {type(self.lam).__name__} follows the position of the query: '
                'its multipliers need positions_T'
            )
        multipliers = self.lam.multipliers(coefficients_LN, length, positions_T)
        if self.lam_layers == 'all':
            return multipliers
        return _in_heads(self.heads_without_position, multipliers)

    def scale(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        """`multipliers` times those of the model's given law, if it has one."""
        multipliers = self.multipliers(coefficients_LN, length, positions_T)
        if self.law is None:
            return multipliers
        given = self.law.multipliers(self.attention_layers, self.heads, length, positions_T)
        if self.law.heads == 'nope':
            given = _in_heads(self.heads_without_position, given)
        return lam.times(multipliers, given)


def _in_heads(acts_LN: np.ndarray, multipliers: jax.Array) -> jax.Array:
    """The multipliers [L, N] or [L, T, N] in some heads, and 1 in the others."""
    acts = acts_LN[:, None] if multipliers.ndim == 3 else acts_LN
    return jnp.where(acts, multipliers, 1.0)


@functools.lru_cache(maxsize=64)
def _of_kind(config: ModelConfig, kind: LayerKind) -> ModelConfig:
    """`config` with the sizes of that kind as its own."""

    def said(kind: LayerKind) -> dict[str, Any]:
        return {name: getattr(kind, name) or getattr(config, name) for name in kind.sizes}

    pattern = tuple(dataclasses.replace(other, **said(other)) for other in config.pattern)
    return dataclasses.replace(config, **said(kind), pattern=pattern)
