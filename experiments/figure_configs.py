"""The config of a figure, and the settings of the figure that its config has not.

A figure's spec.json has its settings and not the file. The command that drew it tells the file,
which is read as `nope run` reads it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
import re
import runpy
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from experiments import config_files, homes
from experiments.board.decisions import RELEASED, SIZES
from experiments.board.summaries import Summary, of_work
from experiments.config import LAYER

# What may differ in a figure that is one of its config, and at paper size besides, where the user
# gives the files.
FREE = ('name', 'seeds')
FILES = ('corpora.', 'data.', 'harness.files', 'longbench.folder', 'task.path', 'task.tokenizer')
# Their model is the user's, and they have no sizes.
OF_CHECKPOINTS = ('extend', 'checkpoint', 'whole_text')
# Sections of entries by name: a field of an entry that its config has not was given to it.
ENTRIES = ('corpora.', 'evals.', 'exports.', 'runs.')
_OF_CODE = re.compile(r'.*\.kind|corpora\.[^.]+\.tokenizer')  # fields of entries with defaults
_OF_LAYER = re.compile(r'.*\.pattern\[\d+\]\.(\w+)')


@dataclasses.dataclass(frozen=True)
class Differences:
    """The config is 'configs/FOLDER/FILE.py:SIZE', '' where it is not known. `changed` maps a path
    to its values, (default, here). A command with `flags` makes the same figure; None where a flag
    cannot give a setting."""

    config: str
    changed: Mapping[str, tuple[str, str]]
    flags: tuple[str, ...] | None


def differences(settings: Mapping[str, Any], asked: str) -> Differences:
    """Differences from the config that a command asked for. `asked` followed --config=:
    'PLACE/configs/FOLDER/FILE.py:ARGUMENT'; '' where that is not known."""
    parts = re.fullmatch(r'(?:.*/)?configs/\w+/(\w+)\.py(?::(.*))?', asked)
    if parts is None or not config_files.find(parts[1]) or not settings:
        return Differences('', {}, None)
    config, argument = parts[1], parts[2] or ''
    flat = _flattened(config, argument)
    if not flat:
        return Differences('', {}, None)
    changed = _changed(settings, flat)
    told = {path: (_text(default), _text(here)) for path, (default, here) in changed.items()}
    place = config_files.place(config) + (f':{argument}' if argument else '')
    return Differences(place, told, _flags(changed))


def changes(folder: pathlib.Path, name: str, size: str) -> dict[str, tuple[Any, Any]]:
    """{path: (the config's value, the figure's)} for settings of the figure in `folder` that its
    config has not at that size. `FREE` may differ. At paper size `FILES` may too, and everything
    where the models are the user's. Another text may lie in any folder."""
    if size == RELEASED or name in OF_CHECKPOINTS:
        return {}
    free = (*FREE, *FILES) if size == SIZES[-1] else FREE
    found = _changed(homes.settings_of(folder), _flattened(*config_files.asked(name, size)))
    if config_files.parted(name)[1]:
        found = {path: values for path, values in found.items() if not _same_kinds(path, *values)}
    return {path: values for path, values in found.items() if not path.startswith(free)}


def summary(folder: pathlib.Path, name: str, size: str) -> Summary:
    """The claims of the figure in `folder`, with the settings that its config has not. Errors as
    `board.of_work`."""
    found = changes(folder, name, size)
    changed = tuple(f'{path}={here!s:.100}' for path, (_, here) in found.items())
    return dataclasses.replace(of_work(folder, name, size), changed=changed)


def check_unchanged(folder: pathlib.Path, name: str, size: str) -> None:
    """ValueError where the figure in `folder` has `changes`, naming a field, or is about a
    checkpoint of the user's, or was not drawn to its end."""
    if name in OF_CHECKPOINTS:
        raise ValueError(
            f"{folder} is about a checkpoint of the user's: --results takes figures of the configs "
            'as they are'
        )
    if not (folder / homes.SPEC).exists():
        raise ValueError(f'{folder} was not drawn to its end; `nope run` draws it anew')
    for path, (own, here) in changes(folder, name, size).items():
        place = config_files.placed(name, size)
        raise ValueError(
            f'{folder} was drawn with {path}={here}, {place} has {own}: --results '
            'takes figures of the configs as they are'
        )


def config_of(figure: str) -> tuple[str, str] | None:
    """Config and size of a figure that has its name from them ('fig1_small'), the config with the
    text where that is another ('fig1_books'); None for other names."""
    config = _named(figure)
    for name in (config, *(f'{config}_{text}' for text in config_files.TEXTS)) if config else ():
        size = SIZES[0] if figure == name else figure.removeprefix(f'{name}_')
        known = size in (*SIZES, RELEASED)
        if known and (name == config or _config(*config_files.asked(name, size))):
            return name, size
    return None


def figure_name(config: str, size: str) -> str:
    """Name of a config's figure at a size: the inverse of `config_of`."""
    return config if size == SIZES[0] else f'{config}_{size}'


def trained_tokens(name: str, size: str, figures: pathlib.Path | None = None) -> int | None:
    """Tokens of the whole pre-training of a figure's models. None where the user gives the models,
    or runs have lengths or steps of their own. The figure's own settings in the folder `figures`
    come before its config's."""
    if size == RELEASED or name in OF_CHECKPOINTS:
        return None
    fields = ('steps', 'batch_size', 'length')
    config = _config(*config_files.asked(name, size))
    if any(field in run.get('train', {}) for run in config['runs'].values() for field in fields):
        return None
    drawn = {} if figures is None else homes.settings_of(figures / figure_name(name, size))
    inits = [str(value) for path, value in drawn.items() if path.endswith('.init')]
    numbers = [drawn.get(f'train.{field}', config['train'][field]) for field in fields]
    given = any(init.startswith('hf:') for init in inits)
    return None if given or None in numbers else math.prod(numbers)


def _same_kinds(path: str, *values: Any) -> bool:
    """Whether values of `data.source` or `data.mixture` differ in the places of text alone."""
    kinds = {re.sub(r'(\w+):[^"]*', r'\1:', json.dumps(value)) for value in values}
    return path in ('data.source', 'data.mixture') and len(kinds) == 1


def _named(figure: str) -> str | None:
    """The config with the longest name that the figure's begins with."""
    ends = [end for end in range(len(figure), 0, -1) if figure[end : end + 1] in ('', '_')]
    return next((figure[:end] for end in ends if config_files.find(figure[:end])), None)


@functools.cache
def _config(name: str, argument: str) -> Mapping[str, Any]:
    """Empty where it has not that size, or is no figure's."""
    get_config = runpy.run_path(str(config_files.ROOT / config_files.place(name))).get('get_config')
    try:
        given = (argument,) if argument else ()
        return {} if get_config is None else get_config(*given).to_dict()
    except ValueError:
        return {}


@functools.cache
def _flattened(name: str, argument: str) -> Mapping[str, Any]:
    """Path -> value of a config, as `_config`, and as figures note it."""
    return dict(_flat(_config(name, argument), ''))


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
    """Fields of the config, and those of entries and sections beyond it. The other settings are
    defaults of the code, which no config names. Also fields of its entries that the figure was
    drawn without, but for corpora, of which a source reads some."""
    found = {
        path: (defaults.get(path), value)
        for path, value in settings.items()
        if _plain(defaults.get(path)) != _plain(value)
        and (path in defaults or path.rpartition('.')[0] not in defaults or _given(path))
        and not (path not in defaults and _is_default_of_layer(path, value))
    }
    entries = {'.'.join(path.split('.')[:2]) for path in settings}
    for path, value in defaults.items():
        whole = isinstance(value, Mapping | list | tuple) or value is None
        entry = '.'.join(path.split('.')[:2])
        if whole or not path.startswith(ENTRIES[1:]) or not _given(path) or entry not in entries:
            continue
        # Settings note some sections as one value.
        if not any(f'{path}.'.startswith((f'{p}.', f'{p}[')) for p in settings):
            found[path] = value, None
    return dict(sorted(found.items()))


def _given(path: str) -> bool:
    """Whether it is a field of an entry, but for those that have a default."""
    return path.startswith(ENTRIES) and not _OF_CODE.fullmatch(path)


def _is_default_of_layer(path: str, value: Any) -> bool:
    found = _OF_LAYER.fullmatch(path)
    return found is not None and found[1] in LAYER and _plain(value) == LAYER[found[1]]


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
