"""Registry of position encodings, and their construction from a config section."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import UnionType
from typing import Any, get_type_hints

from nope.positions.alibi import Alibi
from nope.positions.base import Position
from nope.positions.learned import Learned
from nope.positions.none import NoPE
from nope.positions.rotary import Rotary
from nope.positions.scaling import SCALINGS, Scaling
from nope.positions.sinusoidal import Sinusoidal
from nope.positions.t5 import T5Bias
from nope.positions.tempered import TemperedNoPE

KINDS: dict[str, type[Position]] = {
    'none': NoPE,
    'tempered': TemperedNoPE,
    'rotary': Rotary,
    'alibi': Alibi,
    't5': T5Bias,
    'sinusoidal': Sinusoidal,
    'learned': Learned,
}


def from_section(section: Mapping[str, Any], train_length: int, field: str) -> Position:
    """Position encoding from `{'kind': NAME, ...fields}`; rotary takes a `scaling` of this form.

    train_length: for rules of scaling that need it and are not given another. field: the
    section's name in messages. ValueError for an unknown kind or field, or a value of the wrong
    type or out of range.
    """
    fields = _named(section, field)
    kind = _kind(fields.pop('kind', None), KINDS, field)
    if kind is Rotary and 'scaling' in fields:
        fields['scaling'] = _scaling(fields['scaling'], train_length, f'{field}.scaling')
    return _make(kind, fields, field)


def _scaling(section: Any, train_length: int, field: str) -> Scaling:
    fields = _named(section, field)
    kind = _kind(fields.pop('kind', None), SCALINGS, field)
    if 'train_length' in _fields(kind):
        fields.setdefault('train_length', train_length)
    return _make(kind, fields, field)


def _named(section: Any, field: str) -> dict[str, Any]:
    if not isinstance(section, Mapping):
        raise ValueError(f"{field} is {section!r}; accepted is {{'kind': NAME, ...}}")
    return dict(section)


def _kind(name: Any, kinds: Mapping[str, type], field: str) -> type:
    if not isinstance(name, str) or name not in kinds:
        raise ValueError(f'{field}.kind is {name!r}; accepted: {", ".join(kinds)}')
    return kinds[name]


def _make(kind: type, given: Mapping[str, Any], field: str) -> Any:
    fields, types = _fields(kind), get_type_hints(kind)
    for name in given:
        if name not in fields:
            accepted = ', '.join(['kind', *fields])
            raise ValueError(f'{field}.{name} is unknown for {kind.__name__}; accepted: {accepted}')
    missing = [n for n, f in fields.items() if n not in given and f.default is dataclasses.MISSING]
    if missing:
        raise ValueError(f'{field}.{missing[0]} is missing; {kind.__name__} needs it')
    values = {n: _typed(value, types[n], f'{field}.{n}') for n, value in given.items()}
    return kind(**values)


def _fields(kind: type) -> dict[str, dataclasses.Field]:
    return {f.name: f for f in dataclasses.fields(kind)}


def _typed(value: Any, wanted: Any, field: str) -> Any:
    """`value` as the field's type: whole numbers pass for floats, sequences for tuples."""
    fits = isinstance(wanted, type | UnionType) and isinstance(value, wanted)
    if fits and (wanted is bool or not isinstance(value, bool)):
        return value
    if wanted in (float, float | None) and type(value) in (int, float):
        return float(value)
    if wanted == tuple[float, ...] and isinstance(value, list | tuple):
        return tuple(_typed(item, float, field) for item in value)
    raise ValueError(f'{field} is {value!r}; accepted is {getattr(wanted, "__name__", wanted)}')
