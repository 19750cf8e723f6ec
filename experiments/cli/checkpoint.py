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
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from experiments import history, typed
from experiments.bench import Bench
from experiments.cli import flags, models
from experiments.cli.declared import Command
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
from nope.data import Tokenizer
from nope.data.prefix import describe_prefix
from nope.model.lam import Constant
from nope.runtime.files import check_present, parse_json, read_object, read_utf8, write_text
from nope.sharding import MeshConfig
from nope.training.config import Compute
from nope.training.goodput import NAME

ERRORS = (ValueError, OSError, CheckpointError, ModuleNotFoundError)


def evaluate(
    options: argparse.Namespace, asked: Sequence[tuple[Command, str]], lengths: tuple[int, ...]
) -> None:
    """Makes the records that are missing, and prints the table of all. asked: evaluations, each
    with the path behind its name. Raises one of ERRORS."""
    compute = Compute(mesh=MeshConfig(fsdp=jax.device_count()))
    bench = Bench(Workspace(options.out, make=False), compute, options.batch_tokens)
    found = models.open_model(options, bench.mesh)
    tokenizer = models.tokenizer_of(found, options.tokenizer)
    prefix, chat = models.prefix(tokenizer, options.bos), models.chat_of(found, options)
    run = _checkpoint(options, found, bool(prefix))
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
    _report(options.out, _rows(bench, specs, tokenizer, prefix, in_turns=chat is not None))


def _checkpoint(options: argparse.Namespace, found: models.Model, bos: bool) -> Source:
    """The model under the multipliers that the flags give. ValueError where it has a lambda."""
    model = found.described.model
    multipliers = _multipliers(options, model.layers, model.heads)
    if multipliers is not None and not isinstance(model.lam, Constant):
        raise ValueError(f'the model has a lambda of its own, {model.lam.describe()}, which stays')
    run = CheckpointSpec(
        path=options.model.removeprefix('hf:'),
        fingerprint=found.identity(),
        model=model,
        data=UnknownText(tokenizer=options.tokenizer or found.tokenizer, bos=bos),
        seed=0,
        train_length=found.described.train_length or 0,
        dtype=found.described.dtype,
        step=options.step,
        read=functools.cache(found.variables),
    )
    if multipliers is None:
        return run
    return MultipliedSpec(run, tuple(map(tuple, multipliers.tolist())))


def _spec(
    options: argparse.Namespace,
    run: Source,
    command: Command,
    path: str,
    lengths: tuple[int, ...],
) -> EvalSpec:
    """The evaluation as an entry of a config would ask for it."""
    kind, where = KINDS[command.kind], f'evals.{command.name}'
    section: dict[str, Any] = {
        field: text if isinstance(command.defaults[field], str) else typed.read(text)
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
    return kind.from_entry(EvalEntry(asked, run, scope, _no_other, _no_other))


def _no_other(*_: Any) -> Any:
    raise ValueError('there is one model')


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


def _multipliers(options: argparse.Namespace, layers: int, heads: int) -> np.ndarray | None:
    """Multipliers of all heads, float32 [layers, heads]; None for those of the model."""
    if options.scale is not None:
        return np.full((layers, heads), options.scale, np.float32)
    if options.lam is None:
        return None
    try:
        found = np.asarray(_read(options.lam), np.float32)
    except (EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f'--lam={options.lam} holds no array of numbers ({error})') from error
    if found.shape != (layers, heads) or not (np.isfinite(found) & (found > 0)).all():
        raise ValueError(
            f'--lam={options.lam} has the shape {list(found.shape)}; it must hold finite numbers '
            f'above 0, [{layers} layers, {heads} heads]'
        )
    return found


def _read(path: pathlib.Path) -> Any:
    check_present(path)
    if path.suffix == '.json':
        found = parse_json(read_utf8(path))
        return found.get('multiplier') if isinstance(found, dict) else found
    found = np.load(path, allow_pickle=False)
    if isinstance(found, np.ndarray):
        return found
    for name in ('multiplier', 'measure/multiplier'):  # the second one in records.npz
        if name in found:
            return found[name]
    raise ValueError(f'no array `multiplier`; it has {sorted(found)}')


def _rows(
    bench: Bench,
    specs: Sequence[EvalSpec],
    tokenizer: Tokenizer,
    prefix: Sequence[int],
    in_turns: bool,
) -> list[dict[str, Any]]:
    """Lines of the table, from the records."""
    rows: list[dict[str, Any]] = []
    for spec in specs:
        folder = bench.workspace.folder(spec)
        seconds = (read_object(folder / NAME) or {})['seconds']['evaluation']
        turns = in_turns and 'chat' in spec.fields
        start = 'in turns' if turns else describe_prefix(tokenizer, prefix)
        rows += [
            {**row._asdict(), 'prefix': start, 'seconds': seconds}
            for row in spec.rows(records.load(folder))
        ]
    return rows


def _shown(value: Any) -> str:
    """Four digits of a number, all of a whole one; a text as it is."""
    if value is None or isinstance(value, str):
        return value or ''
    return f'{value:.0f}' if float(value).is_integer() else f'{value:.4g}'


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
    cells = [[*lines[0]], *([_shown(value) for value in line.values()] for line in lines)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print('  '.join(padded).rstrip())
    print(out / 'results.csv')
