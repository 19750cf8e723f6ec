"""Lookup of lm_eval tasks by name, and their local or downloaded data."""

from __future__ import annotations

import dataclasses
import glob
import importlib.util
import logging
import os
import pathlib
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nope.evals.harness.local import local_tasks
from nope.evals.harness.published import PUBLISHED, TABLE_1
from nope.runtime.files import parse_json, read_object

log = logging.getLogger(__name__)

GROUP = 'local files'  # in which built-in tasks are redirected; no name of the user's


def check_installed() -> None:
    """ModuleNotFoundError, saying what to install, where lm_eval is missing."""
    if importlib.util.find_spec('lm_eval') is None:
        raise ModuleNotFoundError(
            'the evaluation harness is not installed: pip install lm_eval', name='lm_eval'
        )


def metadata_of(text: str) -> dict[str, Any]:
    """Metadata of tasks from JSON, '' for none. ValueError for another text."""
    try:
        found = parse_json(text or '{}')
    except ValueError as error:
        raise ValueError(f'{text} is no JSON: {error}') from error
    if not isinstance(found, dict):
        raise ValueError(f'{text}; accepted: a JSON object')
    return found


class Found(NamedTuple):
    """Tasks that were found, without their data. manager: their lm_eval.tasks.TaskManager. specs:
    the arguments of its `load`. files: of this machine that the tasks name."""

    names: tuple[str, ...]
    manager: Any
    specs: tuple[Any, ...]
    files: tuple[pathlib.Path, ...]


def find(
    names: Sequence[str],
    *,
    include: pathlib.Path | None = None,
    data: pathlib.Path | None = None,
    built_in: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Found:
    """Tasks, groups and tags by name.

    include: folder of task YAML files, which come before lm_eval's own. data: folder of files for
    the tasks of Table 1, BABILong and LongBench v2 (`nope.evals.harness.published` has the
    layout), which then need no network. built_in: look for other names among all tasks of lm_eval;
    it takes half a minute once. metadata: told to tasks that make or choose their data, as
    `max_seq_lengths` and `tokenizer` (RULER and BABILong of lm_eval).

    ValueError for a name that is unknown or given twice, for `data` that no task reads, and for a
    tokenizer with `own_code`.
    FileNotFoundError names all missing files. ModuleNotFoundError without lm_eval.
    """
    check_installed()
    for key in ('tokenizer', 'pretrained', 'model'):
        named = (metadata or {}).get(key)
        if named and (reason := own_code(pathlib.Path(str(named)))):
            raise ValueError(f'metadata names the {key} {reason}')
    if not names:
        raise ValueError('tasks is empty; name at least one')
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f'tasks names {twice[0]!r} twice')
    if include is not None and not include.is_dir():
        raise FileNotFoundError(f'include is {include}; it must be a folder of task YAML files')
    manager = _manager(names, include, metadata, everything=False)
    unknown = [name for name in names if name not in manager.all_tasks]
    if unknown and built_in:
        log.info('looking for %s among all tasks of lm_eval', ', '.join(unknown))
        manager = _manager(names, include, metadata, everything=True)
        unknown = [name for name in names if name not in manager.all_tasks]
    if unknown:
        places = [f'Table 1 ({", ".join(TABLE_1)})']
        if include is not None:
            places.append(f'the YAML files in {include} (one that cannot be read is not looked at)')
        if built_in:
            places.append('the tasks, groups and tags that lm_eval has')
        named = ', '.join(map(repr, unknown))
        raise ValueError(f'task {named} is unknown; looked up in: {"; ".join(places)}')
    members = {name: _members(name, manager) for name in names}
    if data is None:
        return Found(tuple(names), manager, tuple(names), _files(members.values(), manager))
    redirected = {
        name: tasks
        for name, tasks in members.items()
        if all(
            # One of `include` may have the name of lm_eval's own.
            task in PUBLISHED
            and pathlib.Path(manager.task_index[task].yaml_path).is_relative_to(_root())
            for task in tasks
        )
    }
    if not redirected:
        raise ValueError(
            f'data is {data}, but none of {", ".join(names)} reads it; the tasks that do are '
            f'{", ".join(TABLE_1)}, babilong_qa1 to babilong_qa20 and longbench2_*, and groups of '
            'these'
        )
    others = [name for name in names if name not in redirected]
    local = _local(redirected, data, metadata)
    specs = *_redirected(redirected, manager, local), *others
    files = _files([members[name] for name in others], manager, local.values())
    return Found(tuple(names), manager, specs, files)


def _local(
    asked: Mapping[str, tuple[str, ...]], data: pathlib.Path, metadata: Mapping[str, Any] | None
) -> dict[str, dict[str, Any]]:
    """Configs of tasks that read `data`. asked: their names, by those that stand for them."""
    every = [task for tasks in asked.values() for task in tasks]
    for name, tasks in asked.items():
        for task in tasks:
            if every.count(task) > 1:
                known = next(other for other in asked if task in asked[other] and other != name)
                raise ValueError(f'tasks names {task!r} twice: in {name!r} and in {known!r}')
    return dict(zip(every, local_tasks(data, every, metadata), strict=True))


def _files(
    members: Iterable[Iterable[str]], manager: Any, local: Iterable[Mapping[str, Any]] = ()
) -> tuple[pathlib.Path, ...]:
    """Files of this machine that tasks name in their YAML, or in the configs `local`."""
    entries = [manager.task_index.get(task) for tasks in members for task in tasks]
    configs = [*local, *(entry.cfg or {} for entry in entries if entry is not None)]
    found: set[pathlib.Path] = set()
    for config in configs:
        named = (config.get('dataset_kwargs') or {}).get('data_files') or ()
        for value in named.values() if isinstance(named, Mapping) else [named]:
            for text in [value] if isinstance(value, str) else value:
                paths = map(pathlib.Path, glob.glob(os.path.abspath(text), recursive=True))
                found |= {path for path in paths if path.is_file()}
        folder = pathlib.Path(config.get('dataset_path') or '').absolute()
        if not named and config.get('dataset_path') and folder.is_dir():
            found |= {folder / name for name in visible_files(folder)}
    return tuple(sorted(found))


def own_code(folder: pathlib.Path) -> str | None:
    """Reason why lm_eval may read no tokenizer in `folder`, whose code it would run, or None."""
    for name in ('tokenizer_config.json', 'config.json'):
        if (read_object(folder / name) or {}).get('auto_map'):
            return f'{folder}, whose {name} has auto_map: lm_eval would run the code that it names'
    return None


def visible_files(folder: pathlib.Path) -> list[str]:
    """Names below `folder`, sorted, but for hidden ones, which a look at it may leave behind, and
    Python's caches, which loading a task does."""
    within = [path.relative_to(folder) for path in folder.rglob('*') if path.is_file()]
    return sorted(
        path.as_posix()
        for path in within
        if not any(part.startswith('.') or part == '__pycache__' for part in path.parts)
    )


def _members(name: str, manager: Any) -> tuple[str, ...]:
    """Tasks of a task, a group or a tag of lm_eval; those that a group defines itself are left
    out, and it with them: ('',)."""
    entry = manager.task_index.get(name)
    if entry is None:
        return ('',)
    if entry.kind.name == 'TAG':
        return tuple(sorted(entry.tags))
    if entry.kind.name != 'GROUP':
        return (name,)
    inside = [t if isinstance(t, str) else '' for t in (entry.cfg or {}).get('task', ())]
    found = [task for child in inside for task in (_members(child, manager) if child else ('',))]
    return tuple(dict.fromkeys(found)) or ('',)


def _redirected(
    asked: Mapping[str, tuple[str, ...]], manager: Any, specs: Mapping[str, dict[str, Any]]
) -> list[str | dict[str, Any]]:
    """Arguments of lm_eval's `load` for tasks that read local files, `specs`, by the names that
    stand for them: a group keeps its mean."""
    groups: list[str | dict[str, Any]] = []
    alone: list[dict[str, Any]] = []
    for name, tasks in asked.items():
        entry, own = manager.task_index[name], [specs[task] for task in tasks]
        if entry.kind.name == 'GROUP':
            # The index's own entry, since a group that is given as a value passes all that it says
            # on to its tasks.
            config = {**entry.cfg, 'task': own}
            manager.task_index[name] = dataclasses.replace(entry, cfg=config, yaml_path=None)
            groups.append(name)
        else:
            alone += own
    return [*([{'group': GROUP, 'task': alone}] if alone else []), *groups]


def load(found: Found) -> dict[str, Any]:
    """Reads the tasks' data: what lm_eval's `evaluate` takes.

    'tasks' holds name -> lm_eval.api.task.Task in the order of `found.names`. Tasks that do not
    say how many examples stand before a question have none. OSError, saying what to do, where
    data cannot be had; ModuleNotFoundError where a task needs a package that is not there;
    ValueError where it needs a tokenizer of transformers.
    """
    from lm_eval.defaults import DEFAULT_OTHER_SEED, DEFAULT_RANDOM_SEED

    # As lm_eval's `simple_evaluate`: some tasks draw their questions while they load.
    random.seed(DEFAULT_RANDOM_SEED)
    np.random.seed(DEFAULT_OTHER_SEED)
    try:
        loaded = found.manager.load(list(found.specs))
    except AssertionError as error:  # of a task that measures its prompts by a tokenizer
        named = ', '.join(found.names)
        raise ValueError(
            f'{named} of lm_eval cannot be made: {error}. Accepted: a tokenizer that transformers '
            'reads, as metadata {"tokenizer": DIR}'
        ) from error
    except OSError as error:
        raise OSError(
            f'the data of {", ".join(found.names)} cannot be had: {error}. Tasks without a '
            'network read local files: those of Table 1, BABILong and LongBench v2 from the folder '
            'that `data` names, others as their YAML says'
        ) from error
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'{", ".join(found.names)} of lm_eval import {error.name}, which it does not bring: '
            f'pip install {error.name}',
            name=error.name,
        ) from error
    order = {name: place for place, name in enumerate(found.names)}
    tasks = sorted(loaded['tasks'].items(), key=lambda item: order.get(item[0], len(order)))
    for _, task in tasks:
        if task.get_config('num_fewshot') is None:
            task.set_config(key='num_fewshot', value=0)
        task.set_fewshot_seed(seed=DEFAULT_OTHER_SEED)
    groups = {name: group for name, group in loaded.get('groups', {}).items() if name != GROUP}
    return {
        'tasks': dict(tasks),
        'groups': groups,
        'group_map': {name: group.child_names for name, group in groups.items()},
    }


def _manager(
    names: Sequence[str],
    include: pathlib.Path | None,
    metadata: Mapping[str, Any] | None,
    everything: bool,
) -> Any:
    """An index of `include`, and of all of lm_eval or of the tasks that read local files."""
    from lm_eval.tasks import TaskManager

    known = {task.folder for task in PUBLISHED.values()}
    wanted = [
        PUBLISHED[n].folder
        if n in PUBLISHED
        else n.partition('_')[0]  # a group's: babilong_longctx
        for n in names
    ]
    folders = [] if everything else [_root() / folder for folder in wanted if folder in known]
    paths = [*dict.fromkeys(folders), *([] if include is None else [include])]
    told = None if metadata is None else dict(metadata)
    return TaskManager(include_path=paths, include_defaults=everything, metadata=told)


def _root() -> pathlib.Path:
    """The folder of lm_eval's own tasks."""
    import lm_eval.tasks

    return pathlib.Path(lm_eval.tasks.__file__).parent
