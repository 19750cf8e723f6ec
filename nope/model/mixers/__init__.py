"""Mixers, what a layer does with the sequence.

A new one is a file here, derived from `Mixer`, and a line in `MIXERS`; a config then names it.
"""

from nope.model.mixers.attention import Attention
from nope.model.mixers.base import Mixer, Parts
from nope.model.mixers.mamba2 import Mamba2
from nope.model.mixers.registry import MIXERS, from_section

__all__ = ['MIXERS', 'Attention', 'Mamba2', 'Mixer', 'Parts', 'from_section']
