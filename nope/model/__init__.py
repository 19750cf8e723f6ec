"""The decoder and its lambda collection."""

from nope.model.config import ModelConfig
from nope.model.kinds import LayerKind
from nope.model.shape import AttentionShape
from nope.model.transformer import ModelOutput, Transformer, apply

__all__ = ['AttentionShape', 'LayerKind', 'ModelConfig', 'ModelOutput', 'Transformer', 'apply']
