"""Differences of a figure's settings from the config that it was made from.

A figure's spec.json has its settings and not the file: that is told by the command that drew it, or
else found by the figure's name, as FILE or FILE_SIZE and whatever was put behind. It is read as
`experiments.run` reads it.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import pathlib
import re
import runpy
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.board.decisions import RELEASED, SIZES

# Sections of entries by name: a field of an entry that its config has not was given to it.
ENTRIES = ('corpora.', 'evals.', 'exports.', 'runs.')
_OF_CODE = re.compile(r'.*\.kind|corpora\.[^.]+\.tokenizer')  # fields of entries with defaults


@dataclasses.dataclass(frozen=True)
class Differences:
    """config: 'configs/FILE.py:SIZE', '' where none has the figure's name. changed: path ->
    (default, here). flags: those of a command that makes the same figure; None where a setting
    cannot be given by a flag."""

    config: str
    changed: Mapping[str, tuple[str, str]]
    flags: tuple[str, ...] | None


def of(name: str, settings: Mapping[str, Any], asked: str = '') -> Differences:
    """From the config that a command asked for, or where that is not known from that size of the
    config of the figure's name whose settings differ in the fewest paths. asked: what followed
    --config=, 'PLACE/configs/FILE.py:ARGUMENT'."""
    found, arguments = _asked_for(asked)
    if found is None:
        found = _config_of(name)
        short = found is not None and name == found.stem
        arguments = SIZES[:1] if short else (*SIZES, RELEASED)
    if found is None or not settings:
        return Differences('', {}, None)
    made = [(a, _changed(settings, flat)) for a in arguments if (flat := _defaults(found, a))]
    if not made:
        return Differences('', {}, None)
    argument, changed = min(made, key=lambda pair: len(pair[1]))
    told = {path: (_text(default), _text(here)) for path, (default, here) in changed.items()}
    config = f'configs/{found.stem}.py' + (f':{argument}' if argument else '')
    return Differences(config, told, _flags(changed))


def _asked_for(asked: str) -> tuple[pathlib.Path | None, Sequence[str]]:
    """The config and its argument; None where it is none of ours."""
    parts = re.fullmatch(r'(?:.*/)?configs/(\w+)\.py(?::(.*))?', asked)
    folder = _configs()
    if parts is None or folder is None or not (folder / f'{parts[1]}.py').is_file():
        return None, ()
    return folder / f'{parts[1]}.py', (parts[2] or '',)


def changed(name: str, size: str, settings: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Path -> (default, here) of a config's settings that are not its own at that size."""
    folder = _configs()
    return _changed(settings, _defaults(folder / f'{name}.py', size)) if folder else {}


@functools.cache
def _configs() -> pathlib.Path | None:
    found = importlib.util.find_spec('configs')
    return None if found is None or not found.origin else pathlib.Path(found.origin).parent


def _config_of(name: str) -> pathlib.Path | None:
    """The config with the longest name that the figure's begins with."""
    folder = _configs()
    stems = [name[:end] for end in range(len(name), 0, -1) if name[end : end + 1] in ('', '_')]
    paths = [folder / f'{stem}.py' for stem in stems] if folder else []
    return next((path for path in paths if path.is_file()), None)


@functools.cache
def _defaults(path: pathlib.Path, size: str) -> dict[str, Any]:
    """Path -> value of a config; nothing where it has not that size, or is no figure's."""
    get_config = runpy.run_path(str(path)).get('get_config')
    given = (size,) if size else ()
    try:
        return {} if get_config is None else dict(_flat(get_config(*given).to_dict(), ''))
    except ValueError:
        return {}


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Also the sections themselves: a figure's settings have some of them as one value."""
    if path:
        yield path, value
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f'{path}.{key}' if path else key)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _flat(inner, f'{path}[{number}]')


def _changed(
    settings: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Fields that the config has, and those of entries and of sections that it has not; what else
    is in the settings are defaults of the code, which no config names."""
    return {
        path: (defaults.get(path), value)
        for path, value in sorted(settings.items())
        if _plain(defaults.get(path)) != _plain(value)
        and (path in defaults or path.rpartition('.')[0] not in defaults or _given(path))
    }


def _given(path: str) -> bool:
    """Whether it is a field of an entry, but for those that have a default."""
    return path.startswith(ENTRIES) and not _OF_CODE.fullmatch(path)


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _flags(changed: Mapping[str, tuple[Any, Any]]) -> tuple[str, ...] | None:
    flags = []
    for path, (_, value) in changed.items():
        if isinstance(value, Mapping) or (
            isinstance(value, list) and any(isinstance(v, dict) for v in value)
        ):
            return None
        typed = tuple(value) if isinstance(value, list) else value
        flags.append(shlex.quote(f'--config.{path}={typed}'))
    return tuple(flags)


def _text(value: Any) -> str:
    return f'{value!r:.300}'
