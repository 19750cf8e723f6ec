"""Position encodings: one small file and one frozen dataclass each.

Every encoding has `encode(q_BTNH, k_BTKH, positions_BT, length) -> (q, k)` and
`describe() -> str`. A new one is a file here and a line in `KINDS`.
"""

from nope.positions.none import NoPE
from nope.positions.rotary import DynamicNTK, Rotary, Unscaled

Position = NoPE | Rotary

KINDS: dict[str, type[Position]] = {'none': NoPE, 'rotary': Rotary}
SCALINGS = {'none': Unscaled, 'dynamic_ntk': DynamicNTK}

__all__ = ['KINDS', 'SCALINGS', 'DynamicNTK', 'NoPE', 'Position', 'Rotary', 'Unscaled']
