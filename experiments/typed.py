"""Fields of entries as the command line types them: --config.evals.NAME.FIELD=VALUE.

The flags of ml_collections change fields that a config has, under names that are Python's. Entries
of `runs`, `evals`, `exports` and `corpora` may have names with slashes, and more fields than their
config gives them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from experiments.config import within

GROUPS = ('runs', 'evals', 'exports', 'corpora')
FLAG = re.compile(r'--config(\.[^=]+)?')
OF_ENTRY = re.compile(rf'--?config\.({"|".join(GROUPS)})[.\[]')
_ARGUMENT = re.compile(r'--?config\.([^=]+)(?:=(.*))?', re.DOTALL)
_PATH = re.compile(r'(\w+)(?:\.|(?=\[))(.+)', re.DOTALL)
_NAMES = re.compile(r'\[([\'"])(.*?)\1\]|[^.\[]+(?:\[\d+\])*')
_BRACKETED = re.compile(r'\[([\'"])(.*?)\1\]\.?')


class Place(NamedTuple):
    """A field of an entry. below: path within the entry, '' for the entry itself."""

    group: str
    name: str
    below: str

    @property
    def path(self) -> str:
        """As in error messages and settings: 'evals.nope_tasks/.window'."""
        return '.'.join((self.group, self.name, *([self.below] if self.below else [])))

    @property
    def quoted(self) -> str:
        """As ml_collections reads it: "evals['nope_tasks/'].window"."""
        return f'{self.group}[{self.name!r}]' + (f'.{self.below}' if self.below else '')


class Added(NamedTuple):
    """A field that an entry is to have, and its value."""

    place: Place
    value: Any


def joined(argv: Sequence[str]) -> list[str]:
    """The arguments with `--config FILE` and `--config.FIELD VALUE` as one argument each.
    ValueError for a `--config` without a file."""
    found: list[str] = []
    for argument in argv:
        waits = found and FLAG.fullmatch(found[-1]) and not argument.startswith('--')
        if waits:
            found[-1] += f'={argument}'
        else:
            found.append(argument)
    if '--config' in found:
        raise ValueError('--config names no file; accepted: --config=FILE.py:SIZE')
    return found


def place_of(config: Mapping[str, Any], path: str) -> Place | None:
    """The entry of a path like `evals.NAME.FIELD` or `evals['NAME'].FIELD`; None for any other
    path. Of names that fit, the longest is meant."""
    found = _PATH.fullmatch(path)
    if found is None or found[1] not in GROUPS or found[1] not in config:
        return None
    group, rest = found.groups()
    if bracketed := _BRACKETED.match(rest):
        name = bracketed[2]
        return Place(group, name, rest[bracketed.end() :]) if name in config[group] else None
    fitting = [name for name in config[group] if within(rest, name)]
    if not fitting:
        return None
    name = max(fitting, key=len)
    return Place(group, name, rest[len(name) + 1 :])


def sort_out(
    config: Mapping[str, Any], arguments: Sequence[str]
) -> tuple[list[str], tuple[Added, ...]]:
    """Arguments as ml_collections reads them, and the fields of entries that it cannot set: those
    that the config does not give them."""
    kept, added = [], []
    for argument in arguments:
        found = _ARGUMENT.fullmatch(argument)
        place = None if found is None else place_of(config, found[1])
        if found is None or place is None:
            kept.append(argument)
        elif _is_there(config[place.group][place.name], place.below):
            value = '' if found[2] is None else f'={found[2]}'
            kept.append(f'--config.{place.quoted}{value}')
        elif found[2] is None:
            raise ValueError(f'--config.{place.path}: write --config.{place.path}=VALUE')
        else:
            added.append(Added(place, read(found[2])))
    return kept, tuple(added)


def add(config: ConfigDict, fields: Iterable[Added]) -> None:
    """Gives entries the fields; whether they may have them is left to the build."""
    for place, value in fields:
        section, where = config[place.group][place.name], f'{place.group}.{place.name}'
        *inner, last = place.below.split('.')
        for name in inner:
            if name not in section:
                with section.unlocked():
                    section[name] = ConfigDict()
            section, where = section[name], f'{where}.{name}'
            if not isinstance(section, ConfigDict):
                raise ValueError(f'--config.{where} is {section!r}, which has no fields')
        with section.unlocked():
            section[last] = value


def names_of(path: str) -> list[str]:
    """The keys of a path in which names of entries stand in brackets."""
    parts = _NAMES.finditer(path)
    return [part[2] if part[1] else part[0] for part in parts]


def plain_path(config: Mapping[str, Any], path: str) -> str:
    """A path as messages and settings name it."""
    place = place_of(config, path)
    return path if place is None else place.path


def read(text: str) -> Any:
    """A Python literal, true or false as flags have them, or the text itself."""
    if text in ('true', 'false'):
        return text == 'true'
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _is_there(entry: Any, below: str) -> bool:
    for name in below.partition('[')[0].split('.') if below else ():
        if not isinstance(entry, Mapping | ConfigDict) or name not in entry:
            return False
        entry = entry[name]
    return True
