"""Work of evaluate.py, behind its flags: model, lambda, evaluations, one table."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import io
import json
import pathlib
import time
import zipfile
from collections.abc import Sequence
from typing import Any

import _evaluations
import jax
import numpy as np
from _evaluations import Asked

from experiments.cli import flags as _flags
from experiments.cli import models as _models
from nope import records, sharding
from nope.checkpoints.errors import CheckpointError
from nope.data import Tokenizer, digest
from nope.data.prefix import describe_prefix
from nope.evals.generation import Generator
from nope.evals.samples import NAME, SampleLog
from nope.identity import first_difference
from nope.model.lam import Constant
from nope.runtime import progress
from nope.runtime.files import (
    check_present,
    parse_json,
    read_object,
    read_utf8,
    write_json,
    write_text,
)
from nope.sharding import MeshConfig, make_mesh
from nope.variables import Variables, lam_is_neutral, lam_of, with_lam, with_uniform_lam

STOPPED = 'stopped; the same command goes on from here'
SETTINGS, RECORDS = 'settings.json', 'records.json'


def main(options: argparse.Namespace) -> None:
    """Exits with 1 and a message for what cannot be done."""
    with _flags.ending(ValueError, OSError, CheckpointError, ModuleNotFoundError, stopped=STOPPED):
        _run(options)


def _planned(asked: _evaluations.Asked, name: str, path: str) -> _evaluations.Plan:
    """The evaluation `name`, which stands before its errors."""
    try:
        return _evaluations.KINDS[name](asked, path)
    except (ValueError, OSError) as error:
        raise ValueError(f'--eval={name}: {error}') from error


def _run(options: argparse.Namespace) -> None:
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    found = _models.open_model(options, mesh)
    model = found.described.model
    tokenizer = _models.tokenizer_of(found, options.tokenizer)
    prefix, chat = _models.prefix(tokenizer, options.bos), _models.chat_of(found, options)
    options.bos = bool(prefix)
    # Of these alone lengths count neither the prefix nor the turns of a chat.
    beyond = len(prefix) if chat is None else chat.overhead(tokenizer)
    beyond *= any(name in ('ruler', 'nolima') for name, _ in options.eval)
    if model.longest is not None and max(options.lengths) + beyond > model.longest:
        longest = f'{max(options.lengths)}{f" and {beyond} around a prompt" if beyond else ""}'
        raise ValueError(
            f'--lengths has {longest}; the positions of the model end at {model.longest}'
        )
    multipliers = _multipliers(options, model.layers, model.heads)
    if multipliers is not None and not isinstance(model.lam, Constant):
        raise ValueError(f'the model has a lambda of its own, {model.lam.describe()}, which stays')
    asked = Asked(
        options=options,
        model=model,
        train_length=found.described.train_length,
        tokenizer=tokenizer,
        mesh=mesh,
        chat=chat,
    )
    plans = [(name, _planned(asked, name, path)) for name, path in options.eval]
    settings = _settings(options, found, multipliers, tokenizer, prefix)
    if chat:
        settings |= {
            'chat': chat.named,
            'template': digest.of_json([chat.source, chat.tokens]),
        }
    _flags.check_folder(options.out, f'--out={options.out}')
    _check_settings(options.out, '--out', settings)
    for name, plan in plans:
        _check_settings(options.out / name, name, plan.settings)
    for name, _ in plans:
        _flags.check_folder(options.out / name, f'--out={options.out / name}')
    variables = _with(found, multipliers)
    _take_settings(options.out, '--out', settings)
    generator = Generator(model, variables, mesh, batch_tokens=options.batch_tokens)
    rows: list[dict[str, Any]] = []
    for name, plan in plans:
        folder = options.out / name
        _take_settings(folder, name, plan.settings)
        if not (folder / RECORDS).exists():
            log = SampleLog(folder / NAME)
            bar = functools.partial(progress.bar, desc=name)
            began = time.perf_counter()
            measured = plan.measure(generator, variables, log, bar)
            facts = {**measured.attributes, 'seconds': time.perf_counter() - began}
            records.save(dataclasses.replace(measured, attributes=facts), folder)
        measured = records.load(folder)
        seconds = float(measured.attributes.get('seconds', np.nan))
        start = 'in turns' if chat and plan.asks else describe_prefix(tokenizer, prefix)
        rows += [
            {**row._asdict(), 'prefix': start, 'seconds': seconds} for row in plan.rows(measured)
        ]
    _report(options.out, rows)


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


def _with(found: _models.Model, multipliers: np.ndarray | None) -> Variables:
    """The model's variables under the multipliers. ValueError where it has some of its own."""
    variables = found.variables()
    if multipliers is None:
        return variables
    if not lam_is_neutral(found.described.model, variables):
        raise ValueError(
            'the model has multipliers of its own, which --scale and --lam would take the place '
            'of; name the model that they were searched on'
        )
    placed = lam_of(with_uniform_lam(variables, 1.0))
    return with_lam(variables, sharding.put(multipliers, placed.sharding))


def _settings(
    options: argparse.Namespace,
    found: _models.Model,
    multipliers: np.ndarray | None,
    tokenizer: Tokenizer,
    prefix: Sequence[int],
) -> dict[str, Any]:
    """Model, lambda and tokenizer that the results of a folder are of."""
    path = options.model.removeprefix(_models.IMPORT)
    settings = {
        'model': str(pathlib.Path(path).resolve()),
        'fingerprint': found.identity(),
        'step': options.step,
        'nope': options.nope,
        'tokenizer': tokenizer.fingerprint,
        'prefix': [*prefix],
        'multipliers': None if multipliers is None else multipliers.tolist(),
    }
    others = [end for end in tokenizer.stop_ids if end != tokenizer.eos_id]
    return {**settings, 'stop_ids': list(tokenizer.stop_ids)} if others else settings


def _take_settings(folder: pathlib.Path, name: str, settings: dict[str, Any]) -> None:
    """Leaves the settings in a folder. ValueError where it has other ones."""
    _check_settings(folder, name, settings)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / SETTINGS, settings)


def _check_settings(folder: pathlib.Path, name: str, settings: dict[str, Any]) -> None:
    """ValueError where a folder has other settings."""
    found = read_object(folder / SETTINGS)
    if found is None:
        return
    if difference := first_difference(settings, found):
        raise ValueError(
            f'{folder} holds results of other settings: {difference}. Give another --out, or '
            f'remove {folder}' + ('' if name == '--out' else f', and {name} is measured anew')
        )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)


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
    plain = [
        {key: None if _is_nan(value) else value for key, value in line.items()} for line in lines
    ]
    write_text(out / 'results.jsonl', ''.join(f'{json.dumps(row)}\n' for row in plain))
    cells = [[*lines[0]], *([_shown(value) for value in line.values()] for line in lines)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    for line in cells:
        print(
            '  '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
    print(out / 'results.csv')
