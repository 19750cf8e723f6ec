"""Typed values from plain ones: names and types of a dataclass's fields, checked in one place.

Registries make their members here from `{'kind': NAME, ...fields}`, a config's sections their
typed values, and a spec's JSON its dataclasses. Errors name the field as it was typed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, TypeVar, get_args, get_type_hints

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


def make(kind: type[Kind], given: Mapping[str, Any], field: str, tag: str = 'kind') -> Kind:
    """An instance of the dataclass. ValueError for an unknown field, a missing one, or a value of
    another type or out of range (the dataclass's own `FieldError`). tag: names its class."""
    path = f'{field}.{{}}'.format
    fields = fields_of(kind)
    check_known(given, (tag, *fields), path, kind.__name__)
    for name, known in fields.items():
        if name not in given and known.default is known.default_factory is dataclasses.MISSING:
            raise ValueError(f'{field}.{name} is missing; {kind.__name__} needs it')
    values = {name: typed(kind, name, value, path(name)) for name, value in given.items()}
    with naming(path, fields):
        return kind(**values)


def rebuild(value: Any, kinds: Mapping[str, type]) -> Any:
    """The tree of dataclasses that `nope.identity.plain` made `value` from.

    kinds: type name -> dataclass. What was left out has its default. Errors as `make`.
    """
    if isinstance(value, list):
        return tuple(rebuild(item, kinds) for item in value)
    if not isinstance(value, Mapping):
        return value
    fields = dict(value)
    kind: type = kind_of(fields.pop('type', None), kinds, 'type')
    return make(kind, {n: rebuild(x, kinds) for n, x in fields.items()}, kind.__name__, 'type')


def check_known(
    given: Iterable[str], accepted: Iterable[str], path: Callable[[str], str], owner: str = ''
) -> None:
    """ValueError for a field that is not accepted. path: a field's place. owner: whose field it
    would be."""
    known = list(accepted)
    for name in given:
        if name not in known:
            of = f' for {owner}' if owner else ''
            raise ValueError(f'{path(name)} is unknown{of}; accepted: {", ".join(known)}')


def fields_of(kind: type) -> dict[str, dataclasses.Field]:
    """The fields of a dataclass by name."""
    return {f.name: f for f in dataclasses.fields(kind)}


_types = functools.cache(get_type_hints)  # evaluates the text of each annotation


def typed(kind: type, name: str, value: Any, where: str) -> Any:
    """`value` as the dataclass's field: whole numbers pass for floats, sequences for tuples of
    them. ValueError, naming `where`, for a value of another type."""
    wanted = _types(kind)[name]
    kinds = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    if wanted == tuple[float, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(describe(where, value, f'accepted is {wanted}'))
        return tuple(_plain(item, (float,), where) for item in value)
    if all(isinstance(each, type) and not get_args(each) for each in kinds):
        return _plain(value, kinds, where)
    return value  # the dataclass's own business


def _plain(value: Any, kinds: tuple[type, ...], where: str) -> Any:
    if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
        return value
    if float in kinds and type(value) is int:
        return float(value)
    told = ' | '.join('None' if kind is type(None) else kind.__name__ for kind in kinds)
    raise ValueError(describe(where, value, f'accepted is {told}'))


@contextlib.contextmanager
def naming(path: Callable[[str], str], known: Iterable[str]) -> Iterator[None]:
    """Lets a `FieldError` say what was typed. path: a dataclass's field -> its place. known: the
    fields that have one; errors of others stay."""
    try:
        yield
    except FieldError as error:
        name, below = re.fullmatch(r'(\w+)(.*)', error.field).groups()  # type: ignore[union-attr]
        if name not in known:
            raise
        raise ValueError(describe(f'{path(name)}{below}', error.value, error.rule)) from error
