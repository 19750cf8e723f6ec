"""The built-in tasks of the paper's Table 1: where lm_eval keeps them, and the data they read.

Without a network the tasks read local files, one a task and named after it, in the columns of the
published data sets:

    FOLDER/arc_challenge.jsonl    question, choices {text, label}, answerKey
    FOLDER/arc_easy.jsonl         question, choices {text, label}, answerKey
    FOLDER/boolq.jsonl            passage, question, label (0: no, 1: yes)
    FOLDER/hellaswag.jsonl        activity_label, ctx_a, ctx_b, endings, label
    FOLDER/openbookqa.jsonl       question_stem, choices {text, label}, answerKey
    FOLDER/piqa.jsonl             goal, sol1, sol2, label
    FOLDER/winogrande.jsonl       sentence, option1, option2, answer ('1' or '2')

A Parquet file, NAME.parquet, does as well. The paper takes the test split of arc_challenge,
arc_easy and openbookqa, and the validation split of the others. Other columns are left alone.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from nope.runtime.files import parse_json

SUFFIXES = {'.jsonl': 'json', '.parquet': 'parquet'}  # and what reads them


class Kind(NamedTuple):
    """Type of a column's values."""

    name: str
    holds: Callable[[Any], bool]


def _holds_choices(value: Any) -> bool:
    return isinstance(value, Mapping) and all(TEXTS.holds(value.get(k)) for k in ('text', 'label'))


TEXT = Kind('a string', lambda value: isinstance(value, str))
TEXTS = Kind('a list of strings', lambda v: isinstance(v, list) and all(map(TEXT.holds, v)))
INDEX = Kind('a whole number', lambda value: isinstance(value, int))
DIGITS = Kind('a whole number, also as a string', lambda value: str(value).isdigit())
CHOICES = Kind('{"text": [...], "label": [...]}', _holds_choices)


class Published(NamedTuple):
    """A task: its folder in lm_eval/tasks, and the columns it needs."""

    folder: str
    columns: Mapping[str, Kind]


_ARC = {'question': TEXT, 'choices': CHOICES, 'answerKey': TEXT}

# In the order of the paper's table.
PUBLISHED: Mapping[str, Published] = {
    'arc_challenge': Published('arc', _ARC),
    'arc_easy': Published('arc', _ARC),
    'boolq': Published('super_glue/boolq', {'passage': TEXT, 'question': TEXT, 'label': INDEX}),
    'hellaswag': Published(
        'hellaswag',
        {
            'activity_label': TEXT,
            'ctx_a': TEXT,
            'ctx_b': TEXT,
            'endings': TEXTS,
            'label': DIGITS,
        },
    ),
    'openbookqa': Published(
        'openbookqa', {'question_stem': TEXT, 'choices': CHOICES, 'answerKey': TEXT}
    ),
    'piqa': Published('piqa', {'goal': TEXT, 'sol1': TEXT, 'sol2': TEXT, 'label': INDEX}),
    'winogrande': Published(
        'winogrande', {'sentence': TEXT, 'option1': TEXT, 'option2': TEXT, 'answer': TEXT}
    ),
}


def local_tasks(folder: pathlib.Path, names: Iterable[str]) -> list[dict[str, Any]]:
    """Members of an lm_eval group: the built-in tasks `names`, reading the files in `folder`.

    Raises FileNotFoundError that names every missing file, and ValueError for two files of one
    task or for a file whose first row is not one of that task.
    """
    files = {name: _candidates(folder, name) for name in names}
    missing = [name for name, found in files.items() if not found]
    if missing:
        layout = [
            f'    {name}.jsonl or {name}.parquet: {", ".join(PUBLISHED[name].columns)}'
            for name in missing
        ]
        raise FileNotFoundError(
            f'{folder} lacks the data of {len(missing)} tasks, one file each in the columns of '
            'the published data sets:\n' + '\n'.join(layout)
        )
    for name, found in files.items():
        if len(found) > 1:
            raise ValueError(f'task {name} has two files, {found[0]} and {found[1]}; keep one')
        _check_columns(name, found[0])
    return [_redirected(name, found[0]) for name, found in files.items()]


def _candidates(folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    # Absolute, since the harness takes a file from the working directory of the moment.
    paths = (folder.absolute() / f'{name}{suffix}' for suffix in SUFFIXES)
    return [path for path in paths if path.is_file()]


def _redirected(name: str, path: pathlib.Path) -> dict[str, Any]:
    return {
        'task': name,
        'dataset_path': SUFFIXES[path.suffix],
        'dataset_name': None,
        'dataset_kwargs': {'data_files': {'test': str(path)}},
        'training_split': None,
        'validation_split': None,
        'test_split': 'test',
        'num_fewshot': 0,
    }


def _check_columns(name: str, path: pathlib.Path) -> None:
    row = _first_row(path)
    for column, kind in PUBLISHED[name].columns.items():
        if column not in row:
            raise ValueError(
                f'{path} has no column {column!r}; it has {", ".join(sorted(row)) or "no rows"}, '
                f'and the task needs {", ".join(PUBLISHED[name].columns)}'
            )
        if not kind.holds(row[column]):
            raise ValueError(
                f'{path}: {column} is {row[column]!r} in the first row; it must be {kind.name}'
            )


def _first_row(path: pathlib.Path) -> Mapping[str, Any]:
    """The first row of a file; {} where it has none."""
    if path.suffix == '.parquet':
        return _first_of_parquet(path)
    with path.open('rb') as file:
        line = next((line for line in file if line.strip()), b'{}')
    try:
        row = parse_json(line)
    except ValueError as error:
        raise ValueError(f'{path}: its first line is not JSON ({error})') from error
    if not isinstance(row, dict):
        raise ValueError(f'{path}: its first line is not a JSON object')
    return row


def _first_of_parquet(path: pathlib.Path) -> Mapping[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            batch = next(file.iter_batches(batch_size=1), None)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f'{path}: not a Parquet file ({error})') from error
    return batch.to_pylist()[0] if batch is not None and batch.num_rows else {}
