"""Attention as a decoder's layer has it: projections, positions, lambda, and the layer's options.

An option is a file, which `SelfAttention` calls.
"""

from nope.model.attention.self_attention import SelfAttention

__all__ = ['SelfAttention']
