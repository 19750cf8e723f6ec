"""Every field of every config changes a result, changes how it is carried out, or is refused."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from experiments.build import Experiment, build
from experiments.config import plain, within
from experiments.specs import identifier
from tests.experiments.build_test import CONFIGS, EVERY, config_of

ALL = sorted({*EVERY, *CONFIGS})
# Changes that are fine for their type but name something else that has to be there.
CHOICES = {
    'rms': 'layer',
    'stdlib': 'retrieval',
    'test': 'validation',
    'validation': 'test',
    'none': 'full',
    'joined': 'apart',
}


def changed(value: Any) -> list[Any]:
    """Other values of the same type, the most harmless first."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value + 64, value + 4096, *([value * 2] if value else [])]
    if isinstance(value, float):
        return [value * 1.25 + 0.01, value - 0.5]
    if isinstance(value, str):
        return [CHOICES.get(value, f'{value}x')]
    if isinstance(value, tuple):
        return [(*value[:-1], other) for other in changed(value[-1])] if value else [(0.5,), ('x',)]
    if isinstance(value, dict):
        return [{**value, name: other} for name in value for other in changed(value[name])]
    return [3, 4096]


def set_in(config: Any, path: str, value: Any) -> None:
    """Sets a field; names of entries may have points in them."""
    *sections, last = _names(config, path)
    for name in sections:
        config = config[name]
    with config.ignore_type():
        config[last] = value


def _names(config: Any, path: str) -> list[Any]:
    """The keys that a path is made of: the longest that fit, since they may have points."""
    fitting = [key for key in config if within(path, str(key))]
    key = max(fitting, key=lambda key: len(str(key)))
    rest = path[len(str(key)) + 1 :]
    return [key, *_names(config[key], rest)] if rest else [key]


def identities(experiment: Experiment) -> str:
    """All that determines what the command leaves behind."""
    evals = {name: identifier(spec) for name, spec in experiment.evals.items()}
    exports = [identifier(spec) for spec in experiment.exports]
    return json.dumps([experiment.name, evals, exports, plain(experiment.figure)], sort_keys=True)


def execution(experiment: Experiment) -> str:
    """How it is carried out: what may change without a result changing."""
    runs = {run for spec in experiment.evals.values() for run in _models(spec)}
    files = {str(getattr(spec, name, '')) for spec in experiment.evals.values() for name in FILES}
    return json.dumps([repr(experiment.compute), experiment.batch_tokens, sorted(runs | files)])


FILES = ('folder', 'files', 'include')
GROUPS = ('runs', 'evals', 'exports')  # of named entries


def _models(spec: Any) -> set[str]:
    own = {repr(spec.model)} if hasattr(spec, 'model') else set()
    return own.union(*(_models(part) for part in spec.needs))


@functools.cache
def original(name: str) -> Experiment:
    return build(config_of(name))


def outcome(name: str, path: str, value: Any) -> str:
    """'result', 'execution', 'refused: ...' or 'nothing'."""
    config = config_of(name)
    set_in(config, path, value)
    try:
        found = build(config, [path])
    except (ValueError, OSError) as error:
        return f'refused: {error}'
    if identities(found) != identities(original(name)):
        return 'result'
    return 'nothing' if execution(found) == execution(original(name)) else 'execution'


def names_it(message: str, path: str, value: Any) -> bool:
    """Whether an error names the field as it was typed, or the one that it belongs to; of a
    figure's options, which it calls its own, one of their names or what was given."""
    section, _, options = path.partition('.')
    if section == 'figure' and path not in message:
        told = (f"'{name}" for name in (*options.split('.'), *leaves(value)))
        return 'figure' in message and any(name in message for name in told)
    return path in message or (path.count('.') > 2 and path.rpartition('.')[0] in message)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict | tuple):
        inner = value.values() if isinstance(value, dict) else value
        return [leaf for part in inner for leaf in leaves(part)]
    return [value]


def first_of_alike(config: dict[str, Any]) -> dict[str, Any]:
    """Without entries that have the kind and the fields of an earlier one."""
    left = dict(config)
    for group in GROUPS:
        kept: dict[Any, Any] = {}
        for name, entry in config.get(group, {}).items():
            kept.setdefault((entry.get('kind'), *flat(entry)), (name, entry))
        left[group] = dict(kept.values())
    return left


def field_of(config: dict[str, Any], path: str, value: Any) -> tuple[Any, ...]:
    """What fields of several entries and configs share: the group and the kind of their entry, the
    path in it, and whether they are set."""
    group, _, rest = path.partition('.')
    if group == 'figure':
        return group, config['figure'].get('kind'), rest, type(value)
    if not rest or group not in GROUPS:
        return path, type(value)
    entry = max((name for name in config[group] if within(rest, name)), key=len)
    kind = config[group][entry].get('kind')
    return group, kind, rest[len(entry) + 1 :], type(value)


def wrong(name: str, fields: dict[str, Any]) -> list[Any]:
    """The fields that change nothing and are not refused either, and those whose refusal does not
    name them."""
    silent, unnamed = [], []
    for path, value in fields.items():
        others = [] if value == {} else changed(value)  # a group without entries has no fields
        found: list[str] = []
        for other in others:
            found.append(outcome(name, path, other))
            if found[-1] in ('result', 'execution'):
                break
        else:
            if 'nothing' in found:
                silent.append(path)
            elif found and not any(map(names_it, found, [path] * len(found), others)):
                unnamed.append((path, found))
    return [*silent, *unnamed]


def flat(config: Mapping[str, Any], path: str = '') -> dict[str, Any]:
    """Path -> value of every leaf of nested mappings."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        where = f'{path}.{key}' if path else key
        found |= flat(value, where) if isinstance(value, Mapping) and value else {where: value}
    return found


def test_no_field_is_accepted_and_ignored() -> None:
    """Of fields that several configs have, that of the first."""
    seen: set[Any] = set()
    found: dict[str, list[Any]] = {}
    for name in ALL:
        config = plain(config_of(name))
        fresh = {}
        for path, value in flat(first_of_alike(config)).items():
            field = field_of(config, path, value)
            if field not in seen:
                fresh[path] = value
            seen.add(field)
        found[name] = wrong(name, fresh)
    assert len(seen) > 300
    assert not any(found.values()), found
