"""Attention weights other than softmax's, by T x S arrays: for small models and short sequences."""

from nope.attention.dense.attention import WEIGHTS, check_order, dense_attention
from nope.attention.dense.entmax import MOST_STEPS

__all__ = ['MOST_STEPS', 'WEIGHTS', 'check_order', 'dense_attention']
