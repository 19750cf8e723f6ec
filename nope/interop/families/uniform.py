"""Families without options of shape: as many key-value heads as heads, which share the width, an
MLP of 4 times that width, one bias of distance in every layer."""

from __future__ import annotations

from nope.interop.families import common
from nope.interop.fields import MAX_LAYERS, MAX_VOCABULARY, MAX_WIDTH, Fields
from nope.model import LayerKind, ModelConfig
from nope.positions import Position


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


def unwritable(config: ModelConfig, position: Position) -> str | None:
    """Why a model is not of that shape, with `position` in all layers and no window."""
    N, D = config.heads, config.width
    if config.kinds != (LayerKind(position),):
        return f'its layers have {config.describe_position()}, not {position.describe()}'
    shape = {'kv_heads': N, 'head_dim': D / N, 'mlp_width': 4 * D}
    return common.differs(config, shape)
