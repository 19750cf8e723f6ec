"""Registry of position encodings, and their construction from a config section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nope.positions.alibi import Alibi
from nope.positions.base import Position
from nope.positions.forget import ForgetGate
from nope.positions.kerple import Kerple
from nope.positions.learned import Learned
from nope.positions.none import NoPE
from nope.positions.rope import RoPE
from nope.positions.sandwich import Sandwich
from nope.positions.scale_invariant import ScaleInvariant
from nope.positions.scaling import SCALINGS
from nope.positions.sinusoidal import Sinusoidal
from nope.positions.split import Split
from nope.positions.t5 import T5Bias
from nope.runtime import sections

KINDS: dict[str, type[Position]] = {
    'none': NoPE,
    'rope': RoPE,
    'alibi': Alibi,
    't5': T5Bias,
    'sinusoidal': Sinusoidal,
    'learned': Learned,
    'forget': ForgetGate,
    'kerple': Kerple,
    'sandwich': Sandwich,
    'scale_invariant': ScaleInvariant,
    'split': Split,
}


def from_section(section: Mapping[str, Any], train_length: int, field: str) -> Position:
    """Position encoding from `{'kind': NAME, ...fields}`; RoPE takes a `scaling` of this form,
    split heads take a `local` encoding of it.

    train_length: for rules of scaling that need it and are not given another. field: the
    section's name in messages. ValueError for an unknown kind or field, or a value of the wrong
    type or out of range.
    """
    kind, fields = sections.kind_and_fields(section, KINDS, field)
    if kind is RoPE and 'scaling' in fields:
        place = f'{field}.scaling'
        rule, numbers = sections.kind_and_fields(fields['scaling'], SCALINGS, place)
        if 'train_length' in sections.fields_of(rule):
            numbers.setdefault('train_length', train_length)
        fields['scaling'] = sections.make(rule, numbers, place)
    if kind is Split and 'local' in fields:
        fields['local'] = from_section(fields['local'], train_length, f'{field}.local')
    return sections.make(kind, fields, field)
