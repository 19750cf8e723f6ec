"""State-space layers' sequence part: Mamba-2's scan (arXiv 2405.21060) and its convolution."""

from nope.state_space.chunked import CHUNK, chunked_scan
from nope.state_space.convolution import causal_convolution

__all__ = ['CHUNK', 'causal_convolution', 'chunked_scan']
