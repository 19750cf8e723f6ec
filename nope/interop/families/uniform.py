"""Families of fixed shape: as many key-value heads as heads, which share the width, an MLP of 4
times that width, ALiBi in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.interop.families import common
from nope.interop.families.base import Ignored
from nope.interop.fields import MAX_LAYERS, MAX_VOCABULARY, MAX_WIDTH, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import Alibi


def read_shape(fields: Fields, *, width: str, heads: str, layers: str) -> dict[str, int]:
    """Sizes, as fields of `ModelConfig`, from the keys of these names."""
    D, N = fields.integer(width, MAX_WIDTH // 4), fields.integer(heads, MAX_WIDTH)
    if D % N:
        raise fields.wrong(width, f'a multiple of {heads}, {N}')
    return {
        'layers': fields.integer(layers, MAX_LAYERS),
        'width': D,
        'heads': N,
        'kv_heads': N,
        'mlp_width': 4 * D,
        'vocab_size': fields.integer('vocab_size', MAX_VOCABULARY),
        'head_dim': D // N,
    }


class Uniform:
    """Shared methods of these families; see `nope.interop.families.base.Family`.

    fixed: fields of the model that are the same in all of its checkpoints.
    """

    name: str
    architecture: str
    fixed: Mapping[str, Any]

    def owns(self, config: Mapping[str, Any], names: frozenset[str]) -> bool:
        return common.is_type(config, self.name, self.architecture)

    def ignored(self, config: ModelConfig) -> tuple[Ignored, ...]:
        return common.tied_head(config)

    def unwritable(self, config: ModelConfig) -> str | None:
        position, N, D = Alibi(), config.heads, config.width
        if different := common.differs(config, self.fixed):
            return different
        if config.kinds != (LayerKind(position),):
            return f'its layers have {config.describe_position()}, not {position.describe()}'
        shape = {'kv_heads': N, 'head_dim': D / N, 'mlp_width': 4 * D}
        return common.differs(config, shape)
