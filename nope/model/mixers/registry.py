"""Registry of mixers, and their construction from a config section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.model.mixers.attention import Attention
from nope.model.mixers.base import Mixer
from nope.model.mixers.mamba2 import Mamba2
from nope.runtime import sections

MIXERS: dict[str, type[Mixer]] = {'attention': Attention, 'mamba2': Mamba2}


def from_section(section: Mapping[str, Any] | None, field: str) -> Mixer | None:
    """Mixer from `{'kind': NAME, ...fields}`; None for None, a layer of an MLP alone. ValueError,
    naming `field`, for an unknown kind or field and for a value out of range."""
    if section is None:
        return None
    kind, fields = sections.kind_and_fields(section, MIXERS, field)
    return sections.make(kind, fields, field)
