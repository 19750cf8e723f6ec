"""Attention as a mixer: its options are fields of the model, `nope.model.attention` computes it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from nope.model.mixers.base import Mixer


@dataclasses.dataclass(frozen=True)
class Attention(Mixer):
    """Attention to the keys of the sequence."""

    name: ClassVar[str] = 'attention'
    attends: ClassVar[bool] = True
