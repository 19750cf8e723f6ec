"""Biases on the logits by the distance between query and key: one small file each."""

from nope.attention.bias.alibi import AlibiBias
from nope.attention.bias.base import Bias
from nope.attention.bias.buckets import Buckets
from nope.attention.bias.line import as_array, distances, toeplitz

__all__ = [
    'AlibiBias',
    'Bias',
    'Buckets',
    'as_array',
    'distances',
    'toeplitz',
]
