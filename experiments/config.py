"""Config sections: defaults merged with an entry's changes, and the path of every value.

A config is plain data: sections with defaults, and entries (runs, evaluations, exports) that
change some fields of some sections. `Section` is one section as one entry sees it. Whatever it
hands out is noted in a `Ledger`, so that a field that was set and that nothing read is refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

from nope.identity import execution_fields
from nope.runtime import paths, sections
from nope.runtime.errors import describe

# Of files that are missing, said in errors: the user alone can provide them.
USERS = 'cannot come with this code'

# Fields of a kind of layers, an element of a model's `pattern`.
LAYER = {
    'position': {'kind': 'none'},
    'window': None,
    'chunk': None,
    'qk_norm': None,
    'mixer': {'kind': 'attention'},
    'mlp': True,
}

T = TypeVar('T')


class Ledger:
    """The fields that the build of an experiment has read, by their paths.

    execution: paths of those without effect on results. shadowed: path of a section's field ->
    paths of the entries' fields in its place. targets: the config's `length`, if it has one, which
    is the `target` of all entries.
    """

    def __init__(self, targets: Collection[Any] = ()) -> None:
        self.targets = targets
        self.read: dict[str, Any] = {}
        self.execution: set[str] = set()
        self.shadowed: dict[str, set[str]] = {}

    def note(self, path: str, value: Any, *, execution: bool = False) -> None:
        self.read[path] = value
        if execution:
            self.execution.add(path)

    def has(self, path: str) -> bool:
        """Whether the field was read, or a field around it or inside it."""
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
        """Path -> value of all that was read, without execution: the settings of the results."""
        return {
            path: value for path, value in sorted(self.read.items()) if path not in self.execution
        }


def within(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f'{prefix}.')


class MissingFieldError(KeyError, ValueError):
    """A field that a section has not, for `Mapping.get` and for who typed it."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclasses.dataclass(frozen=True, eq=False)
class Section(Mapping[str, Any]):
    """Named values of a config, each with the path it was typed at.

    name: its path. places: of single fields, where an entry has changed them. nullable: fields that
    may be None. details: fields that change no result.
    """

    name: str
    given: Mapping[str, Any]
    ledger: Ledger
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    nullable: frozenset[str] = frozenset()
    details: frozenset[str] = frozenset()

    def __getitem__(self, field: str) -> Any:
        if field not in self.given:
            raise MissingFieldError(f'{self.path(field)} is missing')
        value = self.given[field]
        if value is None and field not in self.nullable:
            raise self.error(field, 'accepted is a value')
        self.ledger.note(self.path(field), value, execution=field in self.details)
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
        return dataclasses.replace(self, nullable=self.nullable | frozenset(fields))

    def detailing(self, *fields: str) -> Section:
        """The section with fields that change no result."""
        return dataclasses.replace(self, details=self.details | frozenset(fields))

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def __contains__(self, field: object) -> bool:
        return field in self.given

    def inner(self, field: str) -> Mapping[str, Any]:
        """The mapping that a field holds, whose own fields are read one by one."""
        value = self.given[field]
        if not isinstance(value, Mapping):
            raise self.error(field, 'it takes named values')
        return value

    def below(self, field: str) -> Section:
        """The section that a field holds."""
        return Section(self.path(field), self.inner(field), self.ledger)

    def path(self, field: str) -> str:
        """Path under which the field was typed, or would be."""
        return self.places.get(field, f'{self.name}.{field}')

    def execution(self, field: str) -> Any:
        """A value that changes no result."""
        return self.detailing(field).optional(field)

    def changed(self, changes: Mapping[str, Any], where: str) -> Section:
        """The section with an entry's changes, which stand at `where`. ValueError for a field that
        the section has not, and for a value of another type."""
        places = {field: f'{where}.{field}' for field in changes}
        for field, place in places.items():
            if self.path(field) != place:
                self.ledger.shadowed.setdefault(self.path(field), set()).add(place)
        given = merge(self.given, changes, where)
        return dataclasses.replace(self, given=given, places={**self.places, **places})

    def without(self, field: str) -> Section:
        """The section without a field."""
        kept = {name: value for name, value in self.given.items() if name != field}
        return dataclasses.replace(self, given=kept)

    def with_defaults(self, defaults: Mapping[str, Any]) -> Section:
        """The section with values for the fields that it has not."""
        return dataclasses.replace(self, given={**defaults, **self.given})

    def only(self, accepted: Iterable[str], owner: str = '') -> Section:
        """This section. ValueError for a field that is not accepted. owner: whose fields are."""
        sections.check_known(self, sorted(accepted), self.path, owner)
        return self

    def error(self, field: str, rule: str) -> ValueError:
        """Error for a field's value, to be raised."""
        value = self.given.get(field)
        if field == 'target' and value in self.ledger.targets:
            rule = f'{rule} (it is what --config.length gives)'
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
        self.ledger.note(self.path(field), values, execution=field in self.details)
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
        of_kind = cast(type, kind)
        details = execution_fields(of_kind)
        values = {}
        for name in sections.fields_of(of_kind):
            if name in self and name not in given:
                path = self.path(name)
                values[name] = sections.typed(of_kind, name, self.given[name], path)
                self.ledger.note(path, values[name], execution=execution or name in details)
        with self.naming():
            return kind(**values, **given)

    @contextlib.contextmanager
    def naming(self, **fields: str) -> Iterator[None]:
        """Lets the errors of typed values name what was typed. fields: a dataclass's field -> the
        section's, where they differ."""
        known = {name: name for name in self} | {n: own for n, own in fields.items() if own in self}
        with sections.naming(lambda name: self.path(known[name]), known):
            yield

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
    sections.check_known(changes, sorted(section), f'{where}.{{}}'.format)
    for key, value in changes.items():
        old = section[key]
        if key in ('law', 'mixer'):  # a name, a section or None, read by their own registries
            merged[key] = value
        elif isinstance(old, Mapping):
            if not isinstance(value, Mapping):
                raise ValueError(f'{where}.{key} is {value!r}; it takes named values')
            if key == 'position':  # another kind has other fields: it takes the old one's place
                merged[key] = dict(value) if 'kind' in value else {**old, **value}
            else:
                merged[key] = merge(old, value, f'{where}.{key}')
        elif isinstance(old, float) and type(value) is int:
            merged[key] = float(value)
        elif isinstance(old, tuple) and isinstance(value, str):
            merged[key] = _split(value)
        elif None in (old, value) or type(old) is type(value):  # None: chosen for the user
            merged[key] = value
        else:
            kind = type(old).__name__
            raise ValueError(f'{where}.{key} is {value!r}; accepted is a {kind} as in {old!r}')
    return merged


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _split(text: str) -> tuple[str, ...]:
    """The names of 'a,b'; none of an empty text."""
    return tuple(name.strip() for name in text.split(',')) if text else ()


def plain(value: Any) -> Any:
    """Nested mappings (ConfigDict among them) as plain dicts, in their order, and texts with the
    home folder that a path in them begins with."""
    if isinstance(value, Mapping) or hasattr(value, 'items'):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    return paths.expanded(value) if isinstance(value, str) else value
