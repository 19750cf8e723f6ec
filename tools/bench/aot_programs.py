"""Programs of configs of the size `paper`, without the files of a user, and the longest of them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from jax.sharding import Mesh

from experiments import config_files
from experiments.build import Experiment, build
from experiments.programs import Continuing, Program, Step
from nope.evals import longbench
from nope.evals.generation import Options
from nope.positions import RoPE, Unscaled

# Numbers of an optimizer that change no shape and no operation.
SCHEDULE: dict[str, Any] = {
    'learning_rate': 1.0,
    'schedule': 'cosine',
    'warmup_steps': 0,
    'decay_steps': 1,
    'tail_share': 0.0,
    'end_share': 0.0,
    'b2': 0.0,
}
_ANSWERS = {'retrieval': 'Paragraph 3', 'count': '7', 'classification': 'City'}


def load(config: str, changes: Sequence[str] = (), some: bool = False) -> Experiment:
    """The experiment of configs/FOLDER/NAME.py:SIZE, or NAME:SIZE, with SECTION.FIELD=VALUE
    changes; with `some` only those whose section it has.

    Shapes alone matter: no shards, no tokenizer and no data sets are read, but where a change names
    them.
    """
    path, _, size = config.partition(':')
    found = config_files.module(pathlib.Path(path).stem).get_config(size or 'paper')
    with tempfile.TemporaryDirectory() as folder:
        found.data.mixture = ()
        found.data.tokenizer = 'bytes'
        if 'task' in found:
            found.task.tokenizer = 'words'
        for corpus in found.get('corpora', {}):
            found.corpora[corpus] = {'source': 'stdlib'}
        if 'harness' in found:
            found.harness.files = 'hub'
        if 'longbench' in found:
            write_longbench(pathlib.Path(folder))
            found.longbench.folder = folder
        for change in changes:
            field, _, value = change.partition('=')
            if not some or field.partition('.')[0] in found:
                found.update_from_flattened_dict({field: value})
        return build(found)


def write_longbench(folder: pathlib.Path) -> None:
    """Stand-ins for LongBench's files, NAME.jsonl: as many samples as were published, each right in
    every field and one that its metric can score."""
    for dataset in longbench.DATASETS.values():
        sample = {
            'input': 'Where?',
            'context': 'It is in Paris.',
            'answers': [_ANSWERS.get(dataset.metric, 'Paris')],
            'all_classes': ['City', 'Country'] if dataset.metric == 'classification' else None,
            'length': 4,
        }
        lines = f'{json.dumps(sample)}\n' * dataset.samples
        (folder / f'{dataset.name}.jsonl').write_text(lines)


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


def longest(programs: Mapping[tuple[Program, Mesh], str]) -> dict[tuple[Program, Mesh], str]:
    """The programs with the longest rows among those of the same arrays and operations. These may
    differ in lengths, batch, and numbers of a RoPE scaling, a schedule or a decoder."""
    found: dict[Any, tuple[Program, Mesh]] = {}
    for program, mesh in programs:
        changes: dict[str, Any] = {'length': 0, 'batch': 0}
        position, scaling = program.model.position, None
        if isinstance(position, RoPE):
            scaling = type(position.scaling)
            unscaled = dataclasses.replace(position, scaling=Unscaled())
            changes['model'] = dataclasses.replace(program.model, position=unscaled)
        if isinstance(program, Step):
            changes['accumulate'] = None
            changes['optimizer'] = dataclasses.replace(program.optimizer, **SCHEDULE)
        if isinstance(program, Continuing):
            options = program.options
            changes['options'] = Options(
                1, beams=options.beams, temperature=options.temperature, top_k=options.top_k
            )
        kind = dataclasses.replace(program, **changes), scaling, mesh
        if kind not in found or _reach(program) > _reach(found[kind][0]):
            found[kind] = program, mesh
    return {key: programs[key] for key in found.values()}


def _reach(program: Program) -> int:
    """Tokens of a row, with those that continue it."""
    return program.length + (program.options.new_tokens if isinstance(program, Continuing) else 0)
