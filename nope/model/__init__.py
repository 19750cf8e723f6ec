"""The decoder and its lambda collection."""

from nope.model.config import LayerKind, ModelConfig
from nope.model.transformer import ModelOutput, Transformer, apply

__all__ = ['LayerKind', 'ModelConfig', 'ModelOutput', 'Transformer', 'apply']
