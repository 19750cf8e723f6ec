"""Frozen dataclasses from the plain sections of a config, `{'kind': NAME, ...fields}`.

Every function takes the section's path in the config (`field`) and names it in its errors.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from types import UnionType
from typing import Any, TypeVar, get_type_hints

from nope.runtime.errors import FieldError, describe, one_of

Kind = TypeVar('Kind')


def kind_and_fields(
    section: Any, kinds: Mapping[str, type[Kind]], field: str
) -> tuple[type[Kind], dict[str, Any]]:
    """The class that a section's `kind` names, and the section without it. ValueError for what is
    no mapping, and for an unknown kind."""
    if not isinstance(section, Mapping):
        raise ValueError(describe(field, section, "accepted is {'kind': NAME, ...}"))
    fields = dict(section)
    return kind_of(fields.pop('kind', None), kinds, f'{field}.kind'), fields


def kind_of(name: Any, kinds: Mapping[str, type[Kind]], field: str) -> type[Kind]:
    """The class of that name. ValueError for a name that is not among `kinds`."""
    if not isinstance(name, str) or name not in kinds:
        raise ValueError(describe(field, name, one_of(kinds)))
    return kinds[name]


def make(kind: type[Kind], given: Mapping[str, Any], field: str) -> Kind:
    """An instance of the dataclass. ValueError for an unknown field, a missing one, or a value of
    another type or out of range (the dataclass's own `FieldError`)."""
    fields, types = fields_of(kind), _types_of(kind)
    for name in given:
        if name not in fields:
            accepted = ', '.join(['kind', *fields])
            raise ValueError(f'{field}.{name} is unknown for {kind.__name__}; accepted: {accepted}')
    missing = [n for n, f in fields.items() if n not in given and f.default is dataclasses.MISSING]
    if missing:
        raise ValueError(f'{field}.{missing[0]} is missing; {kind.__name__} needs it')
    values = {n: _typed(value, types[n], f'{field}.{n}') for n, value in given.items()}
    try:
        return kind(**values)
    except FieldError as error:
        where = f'{field}.{error.field}'
        raise ValueError(describe(where, error.value, error.rule)) from error


def fields_of(kind: type) -> dict[str, dataclasses.Field]:
    """The fields of a dataclass by name."""
    return {f.name: f for f in dataclasses.fields(kind)}


def _types_of(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields by name."""
    return _evaluated(kind)


@functools.cache  # evaluates each annotation's text; apart as `identity._execution_fields` is
def _evaluated(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _typed(value: Any, wanted: Any, field: str) -> Any:
    """`value` as the field's type: whole numbers pass for floats, sequences for tuples."""
    fits = isinstance(wanted, type | UnionType) and isinstance(value, wanted)
    if fits and (wanted is bool or not isinstance(value, bool)):
        return value
    if wanted in (float, float | None) and type(value) in (int, float):
        return float(value)
    if wanted == tuple[float, ...] and isinstance(value, list | tuple):
        return tuple(_typed(item, float, field) for item in value)
    raise ValueError(describe(field, value, f'accepted is {getattr(wanted, "__name__", wanted)}'))
