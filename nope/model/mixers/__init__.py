"""Mixers, what a layer does with the sequence.

A new one is a file here, with what `Mamba2` has, and its name in `Mixer` and `MIXERS`; a config
then names it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from nope.model.mixers.mamba2 import Mamba2, Parts
from nope.runtime import sections

__all__ = ['MIXERS', 'Attention', 'Mamba2', 'Mixer', 'Parts', 'from_section']


@dataclasses.dataclass(frozen=True)
class Attention:
    """Attention to the keys of the sequence, which alone has lambda, entropy and positions. Its
    options are fields of the model, and `nope.model.attention` computes it."""

    name: ClassVar[str] = 'attention'


Mixer = Attention | Mamba2
MIXERS: dict[str, type[Any]] = {'attention': Attention, 'mamba2': Mamba2}


def from_section(section: Mapping[str, Any] | None, field: str) -> Mixer | None:
    """Mixer from `{'kind': NAME, ...fields}`; None for None, a layer of an MLP alone. ValueError,
    naming `field`, for an unknown kind or field and for a value out of range."""
    if section is None:
        return None
    kind, fields = sections.kind_and_fields(section, MIXERS, field)
    return sections.make(kind, fields, field)
