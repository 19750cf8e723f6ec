"""Chunked attention: memory-linear, an XLA program of loops over blocks."""

from nope.attention.chunked.kernel import Chunked, chunked_attention

__all__ = ['Chunked', 'chunked_attention']
