"""YaRN: NTK by parts with a temperature (Peng et al., 2023, arXiv 2309.00071)."""

from __future__ import annotations

import dataclasses
import math

from nope.positions.scaling.base import check_positive
from nope.positions.scaling.by_parts import ByParts


@dataclasses.dataclass(frozen=True)
class Yarn(ByParts):
    """`ByParts`, and queries and keys multiplied by 1 + 0.1 ln(factor): logits by its square.

    multiplier: in place of 1 + 0.1 ln(factor); None for that.
    """

    multiplier: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multiplier is not None:
            check_positive(multiplier=self.multiplier)

    @property
    def attention_factor(self) -> float:
        if self.multiplier is not None:
            return self.multiplier
        return 1 + 0.1 * math.log(max(self.factor, 1.0))

    def describe(self) -> str:
        return f', YaRN x{self.factor:g}'
