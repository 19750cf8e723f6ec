"""Config sections: defaults merged with an entry's changes, and the path of every value.

A config is plain data: sections with defaults, and entries (runs, evaluations, exports) that
change some fields of some sections. `Section` is one section as one entry sees it. Whatever it
hands out is noted in a `Ledger`, so that a field that was set and that nothing read is refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from nope.identity import execution_fields
from nope.runtime import paths
from nope.runtime.errors import FieldError, describe

# Of files that are missing, said in errors: the user alone can provide them.
USERS = 'cannot come with this code'

T = TypeVar('T')
# Annotation -> what fits it.
_PLAIN: dict[str, Any] = {'bool': bool, 'int': int, 'float': (float, int), 'str': str}


class Ledger:
    """The fields that the build of an experiment has read, by their paths.

    execution: those that change no result. shadowed: path of a section's field -> paths of the
    entries' fields that took its place. given_once: field of entries -> the path
    of the one field above all sections that gives it for them, and its value.
    """

    def __init__(self, given_once: Mapping[str, tuple[str, Any]] | None = None) -> None:
        self.given_once = given_once or {}
        self.read: dict[str, Any] = {}
        self.execution: set[str] = set()
        self.shadowed: dict[str, set[str]] = {}

    def note(self, path: str, value: Any, *, execution: bool = False) -> None:
        self.read[path] = value
        if execution:
            self.execution.add(path)

    def has(self, path: str) -> bool:
        """True where the field, or something that it belongs to or that belongs to it, was read."""
        return any(within(path, read) or within(read, path) for read in self.read)

    def check_used(self, paths: Iterable[str]) -> None:
        """ValueError, naming it, for a field that was set and changes nothing."""
        for path in paths:
            if self.has(path):
                continue
            instead = sorted(
                other
                for own, others in self.shadowed.items()
                if within(path, own)
                for other in others
            )
            remedy = f'; what is used in its place: {", ".join(instead)}' if instead else ''
            raise ValueError(f'{path} is set, but nothing in this config reads it{remedy}')

    def settings(self) -> dict[str, Any]:
        """Settings that determine the results: path -> value of all that was read, without
        execution."""
        return {
            path: value for path, value in sorted(self.read.items()) if path not in self.execution
        }


def within(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f'{prefix}.')


class Section(Mapping[str, Any]):
    """Named values of a config, each with the path it was typed at.

    path: of the section. places: of single fields, where an entry has changed them. optional:
    fields that may be None. details: fields that change no result.
    """

    def __init__(
        self,
        path: str,
        values: Mapping[str, Any],
        ledger: Ledger,
        places: Mapping[str, str] | None = None,
        optional: frozenset[str] = frozenset(),
        details: frozenset[str] = frozenset(),
    ) -> None:
        self.name = path
        self._values = dict(values)
        self._ledger = ledger
        self._places = dict(places or {})
        self._optional = optional
        self._details = details

    def _with(
        self,
        values: Mapping[str, Any] | None = None,
        places: Mapping[str, str] | None = None,
        optional: frozenset[str] | None = None,
        details: frozenset[str] | None = None,
    ) -> Section:
        """The section with other parts; None for its own."""
        return Section(
            self.name,
            self._values if values is None else values,
            self._ledger,
            self._places if places is None else places,
            self._optional if optional is None else optional,
            self._details if details is None else details,
        )

    def __getitem__(self, field: str) -> Any:
        value = self._values[field]
        if value is None and field not in self._optional:
            raise self.error(field, 'accepted is a value')
        self._ledger.note(self.path(field), value, execution=field in self._details)
        return value

    def optional(self, field: str) -> Any:
        """A value that may be None."""
        return self.allowing(field)[field]

    def named(self, field: str, accepted: str) -> str | None:
        """A name; None where the field is None or left out. accepted: the names, for messages."""
        value = self.optional(field) if field in self else None
        if value is not None and (value == '' or not isinstance(value, str)):
            raise self.error(field, f'accepted: {accepted}, or None')
        return value

    def allowing(self, *fields: str) -> Section:
        """The section with fields that may be None."""
        return self._with(optional=self._optional | frozenset(fields))

    def detailing(self, *fields: str) -> Section:
        """The section with fields that change no result."""
        return self._with(details=self._details | frozenset(fields))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, field: object) -> bool:
        return field in self._values

    def inner(self, field: str) -> Mapping[str, Any]:
        """The mapping that a field holds, whose own fields are read one by one."""
        value = self._values[field]
        if not isinstance(value, Mapping):
            raise self.error(field, 'it takes named values')
        return value

    def path(self, field: str) -> str:
        """Path under which the field was typed, or would be."""
        return self._places.get(field, f'{self.name}.{field}')

    def execution(self, field: str) -> Any:
        """A value that changes no result."""
        value = self._values[field]
        self._ledger.note(self.path(field), value, execution=True)
        return value

    def changed(self, changes: Mapping[str, Any], where: str) -> Section:
        """The section with an entry's changes, which stand at `where`. ValueError for a field that
        the section has not, and for a value of another type."""
        places = dict(self._places)
        for field in changes:
            old = places.get(field, f'{self.name}.{field}')
            if old != f'{where}.{field}':
                self._ledger.shadowed.setdefault(old, set()).add(f'{where}.{field}')
            places[field] = f'{where}.{field}'
        return self._with(merge(self._values, changes, where), places)

    def without(self, field: str) -> Section:
        """The section without a field."""
        return self._with({name: value for name, value in self._values.items() if name != field})

    def with_defaults(self, defaults: Mapping[str, Any]) -> Section:
        """The section with values for the fields that it has not."""
        return self._with({**defaults, **self._values})

    def only(self, accepted: Iterable[str]) -> Section:
        """This section. ValueError for a field that is not accepted."""
        known = sorted(accepted)
        for field in self:
            if field not in known:
                raise ValueError(f'{self.path(field)} is unknown; accepted: {", ".join(known)}')
        return self

    def error(self, field: str, rule: str) -> ValueError:
        """Error for a field's value, to be raised."""
        value = self._values.get(field)
        path, given = self._ledger.given_once.get(field, ('', None))
        if path and value == given:
            rule = f'{rule} (it is what --config.{path} gives)'
        return ValueError(describe(self.path(field), value, rule))

    def at_least(self, field: str, least: int) -> int:
        value = self.optional(field)
        if type(value) is float:
            raise self.error(field, f'it must be a whole number, at least {least}')
        if not is_number(value) or value < least:
            raise self.error(field, f'it must be at least {least}')
        return value

    def finite(self, field: str, *, positive: bool = False) -> float:
        given = self[field]
        value = float(given) if is_number(given) else math.nan
        if not math.isfinite(value) or (positive and value <= 0):
            raise self.error(field, f'it must be finite{" and above 0" if positive else ""}')
        return value

    def choice(self, field: str, accepted: Iterable[str]) -> str:
        known = list(accepted)
        if self[field] not in known:
            raise self.error(field, f'accepted: {", ".join(known)}')
        return self[field]

    def names(self, field: str, known: Iterable[str] | None = None) -> tuple[str, ...]:
        """A tuple of names, none or more; of those that are known, if that is given. Names in one
        text, as `a,b` is typed, are taken apart."""
        given = self[field]
        texts = (given,) if isinstance(given, str) else given
        if not isinstance(texts, list | tuple) or not all(isinstance(t, str) for t in texts):
            raise self.error(field, 'accepted: names, as in a,b')
        values = tuple(name for text in texts for name in _split(text))
        if not all(values):
            raise self.error(field, 'accepted: names, as in a,b')
        self._ledger.note(self.path(field), values, execution=field in self._details)
        accepted = None if known is None else list(known)
        if accepted is not None and not set(values) <= set(accepted):
            raise self.error(field, f'accepted: {", ".join(accepted)}')
        return values

    def several(self, field: str, what: str) -> tuple[Any, ...]:
        """A tuple with something in it, each value once."""
        values = self.get(field, ())
        if not isinstance(values, list | tuple) or not values:
            raise self.error(field, f'it takes one or more {what}')
        if len(set(values)) < len(values):
            raise self.error(field, 'each is taken once')
        return tuple(values)

    def make(self, kind: Callable[..., T], *, execution: bool = False, **given: Any) -> T:
        """A dataclass from the fields that it shares with the section, and from `given`.

        execution: none of them changes a result.
        """
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        details = execution_fields(kind)  # type: ignore[arg-type]
        values = {}
        for field in fields:
            if field.name in self and field.name not in given:
                value = self._values[field.name]
                self._check_type(field.name, value, str(field.type))
                is_detail = execution or field.name in details
                self._ledger.note(self.path(field.name), value, execution=is_detail)
                values[field.name] = value
        with self.naming():
            return kind(**values, **given)

    def _check_type(self, field: str, value: Any, wanted: str) -> None:
        """ValueError unless the value is of the type that a dataclass is annotated with."""
        kinds = wanted.split(' | ')
        if value is None:
            fits = 'None' in kinds
        elif {*kinds} <= {*_PLAIN, 'None'}:
            fits = any(isinstance(value, _PLAIN[kind]) for kind in kinds if kind != 'None')
            fits = fits and (not isinstance(value, bool) or 'bool' in kinds)
        else:
            fits = True  # the dataclass's own business
        if not fits:
            raise self.error(field, f'accepted is a value of type {wanted}')

    @contextlib.contextmanager
    def naming(self, **fields: str) -> Iterator[None]:
        """Lets the errors of typed values name what was typed. fields: a dataclass's field -> the
        section's, where they differ."""
        try:
            yield
        except FieldError as error:
            name, below = re.fullmatch(r'(\w+)(.*)', error.field).groups()  # type: ignore[union-attr]
            field = fields.get(name, name)
            if field not in self:
                raise
            where = f'{self.path(field)}{below}'
            raise ValueError(describe(where, error.value, error.rule)) from error

    @contextlib.contextmanager
    def reading(self, field: str, asked_by: str = '') -> Iterator[None]:
        """Lets errors about the files that a field names begin with its path. asked_by: the field
        that says which files, where there is one."""
        told = f'{self.path(field)}, for {self.path(asked_by)}' if asked_by else self.path(field)
        try:
            yield
        except (FileNotFoundError, ValueError) as error:
            if self.path(field) in str(error):
                raise
            raise type(error)(f'{told}: {error}') from error


def merge(section: Mapping[str, Any], changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`section` with `changes`, whose keys must exist and whose values must be of its types."""
    merged = dict(section)
    for key, value in changes.items():
        if key not in section:
            raise ValueError(f'{where}.{key} is unknown; accepted: {", ".join(sorted(section))}')
        old = section[key]
        if key == 'position':
            if not isinstance(value, Mapping):
                raise ValueError(f'{where}.position is {value!r}; it takes named values')
            merged[key] = changed_position(old, value)
        elif key == 'form':  # a name or a section (`nope.model.lam.from_section`)
            merged[key] = value
        elif isinstance(old, Mapping):
            if not isinstance(value, Mapping):
                raise ValueError(f'{where}.{key} is {value!r}; it takes named values')
            merged[key] = merge(old, value, f'{where}.{key}')
        else:
            merged[key] = _of_its_type(old, value, f'{where}.{key}')
    return merged


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _split(text: str) -> tuple[str, ...]:
    """The names of 'a,b'; none of an empty text."""
    return tuple(name.strip() for name in text.split(',')) if text else ()


def _of_its_type(old: Any, value: Any, where: str) -> Any:
    if isinstance(old, float) and type(value) is int:
        return float(value)
    if isinstance(old, tuple) and isinstance(value, str):
        return _split(value)
    if None in (old, value) or type(old) is type(value):  # None: chosen for the user
        return value
    raise ValueError(f'{where} is {value!r}; accepted is a {type(old).__name__} as in {old!r}')


def changed_position(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Another kind has other fields: it takes the old one's place; else fields are changed."""
    return dict(new) if 'kind' in new else {**old, **new}


def plain(value: Any) -> Any:
    """Nested mappings (ConfigDict among them) as plain dicts, in their order, and texts with the
    home folder that a path in them begins with."""
    if isinstance(value, Mapping) or hasattr(value, 'items'):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    return paths.expanded(value) if isinstance(value, str) else value


def flat(config: Mapping[str, Any], path: str = '') -> dict[str, Any]:
    """Path -> value of every leaf of nested mappings."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        where = f'{path}.{key}' if path else key
        found |= flat(value, where) if isinstance(value, Mapping) and value else {where: value}
    return found
