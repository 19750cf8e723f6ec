"""What makes records: their facts, what they were measured on, and how files are read back."""

from __future__ import annotations

import csv
import dataclasses
import functools
import pathlib
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from experiments.evaluations import KINDS
from experiments.figures import KINDS as KINDS_OF_FIGURE
from experiments.figures import Decided, FigureInput
from nope.records import Records


def measured(records: Records) -> Records:
    """The records with the attribute `measured_on` as their evaluation says it."""
    facts, kind = records.attributes, KINDS[records.attributes['evaluation']]
    # What the sentences take from a spec and not from its records.
    spec = SimpleNamespace(
        extent=int(max(records.along('length', 0), default=0)),
        reach='up to ' if facts['evaluation'] == 'lengths' else '',
        needles=facts.get('needles', 1),
        alike=facts.get('alike', False),
        haystack=facts.get('haystack', 'filler'),
        published=facts.get('published', True),
        windows=() if 'task' in facts else ('some',),
    )
    what, how = kind.measured_on(spec, records)  # type: ignore[arg-type]
    own_text = kind.own_text.fget(spec)  # type: ignore[attr-defined]
    said = {'what': what, 'how': how, 'own_text': own_text}
    return dataclasses.replace(records, attributes={**facts, 'measured_on': said})


def saying(make: Callable[..., Records]) -> Callable[..., Records]:
    @functools.wraps(make)
    def made(*given, **changed) -> Records:
        return measured(make(*given, **changed))

    return made


def attributes(**changed) -> dict:
    facts = {
        'run_id': 'nope-64-4x64-seed0-0123456789ab',
        'model': 'NoPE, 4 layers, width 64, 4 heads, 222k parameters',
        'position': 'none',
        'lam': '1',
        'multiplier': 1.0,
        'data': 'Python standard library sources',
        'split': 'validation',
        'token': 'token',
        'train_length': 64,
        'bos': False,
        'train_tokens': 4_915_200,
        'windows': 512,
        'seed': 0,
        'step': 2400,
        'n_layers': 4,
        'n_heads': 4,
    }
    return facts | changed


def stating(records: Records, **facts) -> Records:
    """The records with other attributes; None takes one away."""
    found = {k: v for k, v in {**records.attributes, **facts}.items() if v is not None}
    return dataclasses.replace(records, attributes=found)


def measuring(records: Records, **arrays: np.ndarray) -> Records:
    """The records with other values of some measures."""
    new = {
        name: dataclasses.replace(records.measures[name], values=np.asarray(values))
        for name, values in arrays.items()
    }
    return dataclasses.replace(records, measures={**records.measures, **new})


def with_records(given: FigureInput, **records: Records) -> FigureInput:
    return dataclasses.replace(given, records={**given.records, **records})


def with_options(given: FigureInput, **options) -> FigureInput:
    return dataclasses.replace(given, options={**given.options, **options})


def claims_of(kind: str, given: FigureInput) -> dict[str, Decided]:
    """By id."""
    return {claim.id: claim for claim in KINDS_OF_FIGURE[kind].draw(given).claims}


def bent(positions, bend, slope, floor) -> np.ndarray:
    """`floor` plus a kink: 0 up to `bend`, then `slope` for each doubling."""
    return floor + slope * np.maximum(np.log2(positions / bend), 0)


# Of evaluations by text: models of the paper's length.
TEXT = {'train_length': 2048}


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])
