"""RoPE frequency scaling: one small file for each rule.

A new one is a file here and a line in `SCALINGS`.
"""

from nope.positions.scaling.base import Scaling, Unscaled
from nope.positions.scaling.by_parts import ByParts
from nope.positions.scaling.linear import Linear
from nope.positions.scaling.llama3 import Llama3
from nope.positions.scaling.longrope import LongRoPE, longrope_multiplier
from nope.positions.scaling.ntk import NTK, DynamicNTK
from nope.positions.scaling.yarn import Yarn

SCALINGS: dict[str, type[Scaling]] = {
    'none': Unscaled,
    'linear': Linear,
    'ntk': NTK,
    'dynamic_ntk': DynamicNTK,
    'by_parts': ByParts,
    'yarn': Yarn,
    'llama3': Llama3,
    'longrope': LongRoPE,
}

__all__ = [
    'NTK',
    'SCALINGS',
    'ByParts',
    'DynamicNTK',
    'Linear',
    'Llama3',
    'LongRoPE',
    'Scaling',
    'Unscaled',
    'Yarn',
    'longrope_multiplier',
]
