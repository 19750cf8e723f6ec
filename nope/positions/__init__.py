"""Position encodings: one small file and one frozen dataclass each.

A new one is a file here, derived from `Position`, and a line in `KINDS`; a config then names it
as `{'kind': NAME, ...its fields}`.
"""

from nope.positions.alibi import Alibi
from nope.positions.base import Gate, Position, Table
from nope.positions.forget import ForgetGate
from nope.positions.kerple import Kerple
from nope.positions.learned import Learned
from nope.positions.none import NoPE
from nope.positions.registry import KINDS, from_section
from nope.positions.rope import RoPE
from nope.positions.sandwich import Sandwich
from nope.positions.scale_invariant import ScaleInvariant
from nope.positions.scaling import (
    NTK,
    SCALINGS,
    ByParts,
    DynamicNTK,
    Linear,
    Llama3,
    LongRoPE,
    Scaling,
    Unscaled,
    Yarn,
    longrope_multiplier,
)
from nope.positions.sinusoidal import Sinusoidal
from nope.positions.split import Split
from nope.positions.t5 import T5Bias

__all__ = [
    'KINDS',
    'NTK',
    'SCALINGS',
    'Alibi',
    'ByParts',
    'DynamicNTK',
    'ForgetGate',
    'Gate',
    'Kerple',
    'Learned',
    'Linear',
    'Llama3',
    'LongRoPE',
    'NoPE',
    'Position',
    'RoPE',
    'Sandwich',
    'ScaleInvariant',
    'Scaling',
    'Sinusoidal',
    'Split',
    'T5Bias',
    'Table',
    'Unscaled',
    'Yarn',
    'from_section',
    'longrope_multiplier',
]
