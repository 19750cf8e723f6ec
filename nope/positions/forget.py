"""Forget gates: logits that fade with what was read since the key (arXiv 2503.02130)."""

from __future__ import annotations

import dataclasses
import math

from nope.positions.base import Gate, Position
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class ForgetGate(Position):
    """q_i . k_j / sqrt(H) + sum of ln f_l over l = j + 1 .. i, f_l = sigmoid(x_l . w + b). Each
    head has its own w and b (Forgetting Transformer; Lin et al., 2025, equations 3 to 5).

    start: b in fresh models. 0 forgets half at every token, as the authors' layers begin; a gate
        that starts at b is open to exp(-t ln(1 + exp(-b))) after t tokens where x . w is 0.
    """

    start: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.start):
            raise FieldError('start', self.start, 'it must be finite')

    def gate(self, heads: int) -> Gate:
        return Gate(heads, self.start)

    def describe(self) -> str:
        return 'forget gate' if not self.start else f'forget gate, start {self.start:g}'
