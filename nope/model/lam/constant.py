"""HeadScale and UniformScale: the coefficient is the multiplier (arXiv 2404.12224)."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import jax

from nope.model.lam.base import Coefficient, Coefficients, Law
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class Constant(Law):
    """p_h, whatever the length: UniformScale when all are equal, HeadScale otherwise.

    arXiv 2404.12224, equations 3 and 4.
    """

    neutral: ClassVar[float] = 1.0
    starts_from_uniform = True

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return c[0]

    def describe(self) -> str:
        return 'HeadScale'

    def check_start(self, start: Coefficient) -> None:
        if isinstance(start, tuple) or not (math.isfinite(start) and start > 0):
            raise FieldError('start', start, 'it must be finite and above 0')
