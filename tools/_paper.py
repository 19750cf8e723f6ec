"""Experiments of the size `paper` without the files of a user, for ahead-of-time compilation."""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
from collections.abc import Sequence

import _stand_ins
from ml_collections import ConfigDict

from experiments import config_files
from experiments.build import Experiment, build


def load(config: str, changes: Sequence[str] = (), some: bool = False) -> Experiment:
    """The experiment of configs/FOLDER/NAME.py:SIZE, or NAME:SIZE, with SECTION.FIELD=VALUE
    changes; with `some` only those whose section it has.

    Shapes alone matter: no shards, no tokenizer and no data sets are read, but where a change names
    them.
    """
    path, _, size = config.partition(':')
    found = config_files.module(pathlib.Path(path).stem).get_config(size or 'paper')
    with tempfile.TemporaryDirectory() as folder:
        _without_files(found, pathlib.Path(folder))
        for change in changes:
            field, _, value = change.partition('=')
            if not some or field.partition('.')[0] in found:
                found.update_from_flattened_dict({field: value})
        return build(found)


def _without_files(config: ConfigDict, folder: pathlib.Path) -> None:
    """Puts what every machine has in the place of a user's files; `folder` is for stand-ins."""
    config.data.mixture = ()
    config.data.tokenizer = 'bytes'
    if 'task' in config:
        config.task.tokenizer = 'words'
    for corpus in config.get('corpora', {}):
        config.corpora[corpus] = {'source': 'stdlib'}
    if 'harness' in config:
        config.harness.files = 'hub'
    if 'longbench' in config:
        _stand_ins.write_longbench(folder)
        config.longbench.folder = str(folder)


def configs() -> list[str]:
    """Every config that has the size `paper`, and each again with what it adds on demand."""
    found = []
    for name in config_files.names():
        module = config_files.module(name)
        with contextlib.suppress(AttributeError, ValueError):  # a part of configs; other sizes
            module.get_config('paper')
            added = (f',{word}' for word in getattr(module, 'ADDITIONS', ()))
            found += [f'{config_files.place(name)}:paper{words}' for words in ('', *added)]
    return found
