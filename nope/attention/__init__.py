"""Attention with log-sum-exp and entropy: pure functions, one contract, several backends."""

from nope.attention.api import attention
from nope.attention.structure import AttentionOutput, Mask

__all__ = ['AttentionOutput', 'Mask', 'attention']
