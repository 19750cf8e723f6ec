"""Attention weights other than softmax's, by T x S arrays: for small models and short sequences."""

from nope.attention.dense.attention import WEIGHTS, check_order, dense_attention

__all__ = ['WEIGHTS', 'check_order', 'dense_attention']
