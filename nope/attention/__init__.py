"""Attention with log-sum-exp and entropy: pure functions, one contract, several backends."""

from nope.attention.api import attention
from nope.attention.bias import Alibi, Bias, Buckets
from nope.attention.structure import AttentionOutput, Mask

__all__ = ['Alibi', 'AttentionOutput', 'Bias', 'Buckets', 'Mask', 'attention']
