"""Work of `nope evaluate`, behind its flags: a checkpoint, its evaluations, one table."""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import io
import json
import pathlib
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.lib.npyio import NpzFile

from experiments import history, typed
from experiments.bench import Bench
from experiments.cli import flags, models
from experiments.config import Ledger, Section, merge
from experiments.evaluations import KINDS, EvalEntry, EvalSpec
from experiments.evaluations.texts import WHOLE
from experiments.execute import check, execute
from experiments.plan import make_plan
from experiments.runs import CheckpointSpec, MultipliedSpec, Source
from experiments.scope import Scope
from experiments.specs import UnknownText
from experiments.workspace import Workspace
from nope import records
from nope.checkpoints.errors import CheckpointError
from nope.data.prefix import describe_prefix
from nope.data.sources import folders
from nope.model import ModelConfig
from nope.model.lam import Constant
from nope.runtime import paths
from nope.runtime.files import check_present, parse_json, read_object, read_utf8, write_text
from nope.sharding import MeshConfig
from nope.training.config import Compute
from nope.training.goodput import NAME

UNREADABLE = (ArithmeticError, EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
ERRORS = (ValueError, OSError, CheckpointError, ModuleNotFoundError)


class Command(NamedTuple):
    """An evaluation of the command line. behind: its name, FOLDER, PATH or ''. what: it measures.
    defaults: of its section. flags: flag -> field of the section."""

    name: str
    behind: str
    kind: type[EvalSpec]
    section: str
    what: str
    defaults: Mapping[str, Any]
    flags: Mapping[str, str]

    @property
    def form(self) -> str:
        return f'{self.name}:{self.behind}' if self.behind else self.name

    def given(self, options: argparse.Namespace) -> dict[str, str]:
        """Texts of its flags, by the fields of the section."""
        texts = {x: vars(options).get(flag.replace('-', '_')) for flag, x in self.flags.items()}
        return {field: text for field, text in texts.items() if text is not None}


@functools.cache
def commands() -> dict[str, Command]:
    """The evaluations of the command line by name."""
    found = {}
    for _, kind in sorted(KINDS.items()):
        if kind.command and kind.defaults is not None:
            name, _, behind = kind.command.partition(':')
            what = (sys.modules[kind.__module__].__doc__ or '').partition('\n')[0]
            given = {'bos', 'lengths', *(['folder'] if behind else [])}
            fields = {
                kind.flags.get(field, field).replace('_', '-'): field
                for field in kind.defaults
                if field not in given
            }
            section = kind.section or kind.kind
            found[name] = Command(name, behind, kind, section, what, kind.defaults, fields)
    return found


def owners() -> dict[str, list[Command]]:
    """Flag -> the evaluations that have it."""
    found: dict[str, list[Command]] = {}
    for command in commands().values():
        for flag in command.flags:
            found.setdefault(flag, []).append(command)
    return found


def evaluate(
    options: argparse.Namespace, asked: Sequence[tuple[Command, str]], lengths: tuple[int, ...]
) -> None:
    """Makes the records that are missing, and prints the table of all. asked: evaluations, each
    with the path behind its name. Raises one of ERRORS."""
    if options.chat and not any({'chat', 'harness'} & {*c.kind.fields} for c, _ in asked):
        raise ValueError('--chat: none of the evaluations asks questions')
    for command, path in asked:
        if command.behind == 'PATH' and pathlib.Path(path).is_dir():
            folders.check_outside(f'--eval={command.name}', pathlib.Path(path), options.out)
    compute = Compute(mesh=MeshConfig(fsdp=jax.device_count()))
    bench = Bench(Workspace(options.out, make=False), compute, options.batch_tokens)
    found = models.open_model(options, bench.mesh)
    tokenizer = models.tokenizer_of(found, options.tokenizer)
    prefix, chat = models.prefix(tokenizer, options.bos), models.chat_of(found, options)
    run: Source = CheckpointSpec(
        path=options.model.removeprefix('hf:'),
        fingerprint=found.identity(),
        model=found.described.model,
        data=UnknownText(tokenizer=options.tokenizer or found.tokenizer, bos=bool(prefix)),
        seed=0,
        train_length=found.described.train_length or 0,
        dtype=found.described.dtype,
        step=options.step,
        read=functools.cache(found.variables),
    )
    multipliers = _multipliers(options, run.model)
    if multipliers is not None:
        run = MultipliedSpec(run, tuple(map(tuple, multipliers.tolist())))
    specs: list[EvalSpec] = []
    for command, path in asked:
        with _naming_flags(command):
            specs.append(_spec(options, run, command, path, lengths))
            check(bench, make_plan(bench.workspace, specs[-1:]).missing)
    missing = make_plan(bench.workspace, specs).missing
    for folder in (options.out, *map(bench.workspace.folder, missing)):
        flags.check_folder(folder, f'--out={folder}')
    history.note(options.out, 'evaluate', sys.argv[1:])
    execute(bench, missing)
    start = describe_prefix(tokenizer, prefix)
    rows: list[dict[str, Any]] = []
    for spec in specs:
        folder = bench.workspace.folder(spec)
        seconds = (read_object(folder / NAME) or {})['seconds']['evaluation']
        began = 'in turns' if chat and 'chat' in spec.fields else start
        rows += [
            {**row._asdict(), 'prefix': began, 'seconds': seconds}
            for row in spec.rows(records.load(folder))
        ]
    _report(options.out, rows)


def _spec(
    options: argparse.Namespace, run: Source, command: Command, path: str, lengths: tuple[int, ...]
) -> EvalSpec:
    """The evaluation as an entry of a config would ask for it."""
    kind, where = command.kind, f'evals.{command.name}'
    if options.chat and kind.kind == 'harness':
        raise ValueError('--chat: `nope harness --chat` asks these tasks in turns')
    if not (run.model.causal or kind.of_encoders):
        raise ValueError(f'{command.name} measures decoders, and the model has causal=False')
    section: dict[str, Any] = {
        field: (
            paths.expanded(text) if isinstance(command.defaults[field], str) else typed.read(text)
        )
        for field, text in command.given(options).items()
    }
    merge(command.defaults, section, f'{where}.{command.section}')
    section |= {'bos': options.bos} if 'bos' in command.defaults else {}
    section |= {'folder': path} if command.behind == 'FOLDER' else {}
    entry: dict[str, Any] = {'tokens': lengths, command.section: section}
    entry |= {'corpus': path} if command.behind == 'PATH' else {}
    entry |= {'chat': True} if options.chat and 'chat' in kind.fields else {}
    corpora = {path: {'source': f'text:{path}', 'split': WHOLE}}
    ledger = Ledger()
    scope = Scope({'runs': {}, 'model': {}, 'corpora': corpora}, 0, ledger)
    asked = Section(where, entry, ledger).only(kind.fields)
    return kind.from_entry(EvalEntry(asked, run, scope))


@contextlib.contextmanager
def _naming_flags(command: Command) -> Iterator[None]:
    """Lets errors begin with the evaluation, and name flags in place of fields of a config."""
    where = f'evals.{command.name}'
    names = {f'{where}.tokens': '--lengths', f'{where}.chat': '--chat'}
    for flag, field in {'bos': 'bos', 'eval': 'folder', **command.flags}.items():
        for place in (f'{where}.{command.section}', command.section):
            names[f'{place}.{field}'] = f'--{flag}'
    names |= {f'--config.{field}': flag for field, flag in names.items()}
    try:
        yield
    except (ValueError, OSError) as error:
        said = str(error)
        for field in sorted(names, key=len, reverse=True):
            said = said.replace(field, names[field])
        raise ValueError(f'--eval={command.name}: {said}') from error


def _multipliers(options: argparse.Namespace, model: ModelConfig) -> np.ndarray | None:
    """Multipliers of all heads, float32 [layers, heads]; None for those of the model. ValueError
    where it has a lambda."""
    shape = model.attention_layers, model.heads
    if options.scale is not None:
        found = np.full(shape, options.scale, np.float32)
    elif options.lam is None:
        return None
    else:
        try:
            check_present(options.lam)
            if options.lam.suffix == '.json':
                read = parse_json(read_utf8(options.lam))
                read = read.get('multiplier') if isinstance(read, dict) else read
            else:
                read = np.load(options.lam, allow_pickle=False)
            if isinstance(read, NpzFile):  # the second name is that of records.npz
                name = next((x for x in ('multiplier', 'measure/multiplier') if x in read), None)
                if name is None:
                    raise ValueError(f'no array `multiplier`; it has {sorted(read)}')
                read = read[name]
            found = np.asarray(read, np.float32)
        except UNREADABLE as error:
            raise ValueError(f'--lam={options.lam} holds no array of numbers ({error})') from error
        if found.shape != shape or not (np.isfinite(found) & (found > 0)).all():
            raise ValueError(
                f'--lam={options.lam} has the shape {list(found.shape)}; it must hold finite '
                f'numbers above 0, [{shape[0]} layers with attention, {shape[1]} heads]'
            )
    if not isinstance(model.lam, Constant):
        raise ValueError(f'the model has a lambda of its own, {model.lam.describe()}, which stays')
    return found


def _report(out: pathlib.Path, lines: Sequence[dict[str, Any]]) -> None:
    """The table on the terminal, as CSV and as JSON lines."""
    text = io.StringIO()
    table = csv.DictWriter(text, [*lines[0]], lineterminator='\n')
    table.writeheader()
    table.writerows(lines)
    write_text(out / 'results.csv', text.getvalue())
    # JSON has no NaN, which the mean of nothing is.
    plain = [{key: None if value != value else value for key, value in x.items()} for x in lines]
    write_text(out / 'results.jsonl', ''.join(f'{json.dumps(row)}\n' for row in plain))

    def shown(value: Any) -> str:
        """Four digits of a number, all of a whole one; a text as it is."""
        if value is None or isinstance(value, str):
            return value or ''
        return f'{value:.0f}' if float(value).is_integer() else f'{value:.4g}'

    cells = [[*lines[0]], *([shown(value) for value in line.values()] for line in lines)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print('  '.join(padded).rstrip())
    print(out / 'results.csv')
