"""Biases on the logits by the distance between query and key: one small file each."""

from nope.attention.bias.alibi import AlibiBias
from nope.attention.bias.base import Bias
from nope.attention.bias.buckets import Buckets
from nope.attention.bias.kerple import KerpleBias
from nope.attention.bias.line import as_array, distances, factors_as_array, toeplitz
from nope.attention.bias.sandwich import SandwichBias
from nope.attention.bias.scale_invariant import ScaleInvariantBias

__all__ = [
    'AlibiBias',
    'Bias',
    'Buckets',
    'KerpleBias',
    'SandwichBias',
    'ScaleInvariantBias',
    'as_array',
    'distances',
    'factors_as_array',
    'toeplitz',
]
