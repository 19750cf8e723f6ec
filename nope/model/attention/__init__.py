"""Attention as a decoder's layer has it: projections, positions, lambda, and the layer's options.

An option is a file: `SelfAttention` names it in one line.
"""

from nope.model.attention.self_attention import SelfAttention

__all__ = ['SelfAttention']
