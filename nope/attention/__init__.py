"""Attention with log-sum-exp and entropy: pure functions, one contract, several backends."""

from nope.attention.api import attention
from nope.attention.bias import (
    AlibiBias,
    Bias,
    Buckets,
    KerpleBias,
    SandwichBias,
    ScaleInvariantBias,
)
from nope.attention.structure import AttentionOutput, Mask

__all__ = [
    'AlibiBias',
    'AttentionOutput',
    'Bias',
    'Buckets',
    'KerpleBias',
    'Mask',
    'SandwichBias',
    'ScaleInvariantBias',
    'attention',
]
