"""The decoder and its lambda collection."""

from nope.model.config import ModelConfig
from nope.model.transformer import ModelOutput, Transformer, apply

__all__ = ['ModelConfig', 'ModelOutput', 'Transformer', 'apply']
