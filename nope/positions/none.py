"""No position encoding: order reaches the model through the causal mask alone."""

from __future__ import annotations

import dataclasses

from nope.positions.base import Position


@dataclasses.dataclass(frozen=True)
class NoPE(Position):
    """Queries and keys are used as projected (arXiv 2404.12224, section 2)."""

    two_sided = True

    def local_heads(self, heads: int) -> int:
        return 0

    def describe(self) -> str:
        return 'none'
