"""Built-in tasks on local files: which file each reads, and what lm_eval is told to read it."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from nope.evals.harness.published import LENGTH, PUBLISHED
from nope.runtime.files import check_present, parse_json

SUFFIXES = {'.jsonl': 'json', '.json': 'json', '.parquet': 'parquet'}  # and what reads them
SHORTEST = '0k'  # BABILong's length without metadata, as in lm_eval
FIRST_READ = 2**20  # characters of a list, whose first row may be longer


def local_tasks(
    folder: pathlib.Path, names: Iterable[str], metadata: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Members of an lm_eval group: the built-in tasks `names`, reading the files in `folder`.

    metadata: `max_seq_lengths` is the length of BABILong's files, as '4k'.

    FileNotFoundError names every missing file. ValueError for two files of one task, a first row of
    another task, and a length that is no text.
    """
    length = (metadata or {}).get(LENGTH, SHORTEST)
    files, layout = {}, []
    for name in names:
        file = PUBLISHED[name].file
        if '{length}' in file and not isinstance(length, str):
            raise ValueError(f"metadata.{LENGTH} is {length!r}; {name} accepts one length, as '4k'")
        stems = [f'{file.format(length=length)}{suffix}' for suffix in SUFFIXES]
        # Absolute, since the harness takes a file from the working directory of the moment.
        files[name] = [path for stem in stems if (path := folder.absolute() / stem).is_file()]
        if not files[name]:
            columns = ', '.join(PUBLISHED[name].columns)
            layout.append(f'    {" or ".join(stems)}: {columns}')
    if layout:
        raise FileNotFoundError(
            f'{folder} lacks the data of {len(layout)} tasks, in the columns of the published '
            'data sets:\n' + '\n'.join(dict.fromkeys(layout))
        )
    for name, found in files.items():
        if len(found) > 1:
            raise ValueError(f'task {name} has two files, {found[0]} and {found[1]}; keep one')
        row, needed = _first_row(found[0]), PUBLISHED[name].columns
        for column, kind in needed.items():
            if column not in row:
                raise ValueError(
                    f'{found[0]} has no column {column!r}; it has '
                    f'{", ".join(sorted(row)) or "no rows"}, and the task needs '
                    f'{", ".join(needed)}'
                )
            if not kind.holds(row[column]):
                raise ValueError(
                    f'{found[0]}: {column} is {row[column]!r} in the first row; it must be '
                    f'{kind.name}'
                )
    return [_redirected(name, found[0]) for name, found in files.items()]


def _redirected(name: str, path: pathlib.Path) -> dict[str, Any]:
    task = PUBLISHED[name]

    def rows_of(rows: Any) -> Any:
        """Rows (datasets.Dataset) of one task of LongBench v2, with lm_eval's column of choices."""
        keys = zip(*(rows[column] for column in task.rows), strict=True)
        wanted = tuple(task.rows.values())
        chosen = [i for i, key in enumerate(keys) if key == wanted]
        if not chosen:
            named = ', '.join(f'{column} {value!r}' for column, value in task.rows.items())
            raise ValueError(f'the file of LongBench v2 has no rows with {named}')
        return rows.select(chosen).map(
            lambda row: {'choices': [row[f'choice_{letter}'] for letter in 'ABCD']}
        )

    picked = {'process_docs': rows_of} if task.rows else {}
    return {
        'task': name,
        'custom_dataset': None,
        'dataset_path': SUFFIXES[path.suffix],
        'dataset_name': None,
        'dataset_kwargs': {'data_files': {task.split: str(path)}},
        'training_split': None,
        'validation_split': None,
        'test_split': task.split,
        'num_fewshot': task.shots,
        **picked,
    }


def _first_row(path: pathlib.Path) -> Mapping[str, Any]:
    """The first row of a file; {} where it has none."""
    check_present(path)
    if path.suffix == '.parquet':
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as rows:
                batch = next(rows.iter_batches(batch_size=1), None)
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f'{path}: not a Parquet file ({error})') from error
        return batch.to_pylist()[0] if batch is not None and batch.num_rows else {}
    with path.open('rb') as file:
        line = next((line for line in file if line.strip()), b'{}')
    if path.suffix == '.json' and line.lstrip().startswith(b'['):
        return _first_of_list(path)
    try:
        row = parse_json(line)
    except ValueError as error:
        raise ValueError(f'{path}: its first line is not JSON ({error})') from error
    if not isinstance(row, dict):
        raise ValueError(f'{path}: its first line is not a JSON object')
    return row


def _first_of_list(path: pathlib.Path) -> Mapping[str, Any]:
    """Of a file that is one list, as much as holds the first row is read."""
    text, row = '', None
    with path.open(encoding='utf-8') as file:
        while row is None:
            more = file.read(max(len(text), FIRST_READ))
            text = (text + more).lstrip()
            begin = text.removeprefix('[').lstrip()
            if begin.startswith(']'):
                return {}
            try:
                row, _ = json.JSONDecoder().raw_decode(begin)
            except (ValueError, RecursionError) as error:
                if not more:
                    raise ValueError(f'{path}: its first row is not JSON ({error})') from error
    if not isinstance(row, dict):
        raise ValueError(f'{path}: its first row is not a JSON object')
    return row
