"""Kinds of files by their names, in capitals or not."""

from __future__ import annotations

import pathlib
import re

PACKINGS = ('.gz', '.zst', '.zstd', '.bz2', '.xz')
JSON_LINES = tuple(
    f'.{form}{packing}' for form in ('jsonl', 'ndjson', 'json') for packing in ('', *PACKINGS)
)
PARQUET = ('.parquet', '.parq', '.pq')

# What data are, how their names end, and how they become a corpus. The first that fits counts.
_KINDS = (
    ('JSON lines', '|'.join(map(re.escape, JSON_LINES)), 'the source jsonl:{path} reads them'),
    ('Parquet files', '|'.join(map(re.escape, PARQUET)), 'the source parquet:{path} reads them'),
    (
        'Arrow files, as datasets.save_to_disk writes them',
        r'\.arrow',
        "export them first, with datasets.load_from_disk('{path}') and to_json or to_parquet, and "
        'read that file as jsonl:FILE or parquet:FILE',
    ),
    (
        'TensorFlow Datasets',
        r'\.(tfrecord|array_record)-\d+-of-\d+',
        'the source tfds:{path} reads them',
    ),
    ('token shards', r'\.array_record', 'the source shards:{path} reads them'),
    ('packed files', r'\.(gz|zstd?|bz2|xz|lz4|br|tar|tgz|zip|7z)', 'unpack them'),
)


def ends_in(file: pathlib.PurePath, suffixes: tuple[str, ...]) -> bool:
    """Whether a file's name ends in one of the suffixes."""
    return file.name.lower().endswith(suffixes)


def kind_of(file: pathlib.PurePath) -> str | None:
    """The kind of data that a file's name says it is, such as 'JSON lines'; None for any other."""
    kinds = (kind for kind, end, _ in _KINDS if re.search(f'({end})$', file.name.lower()))
    return next(kinds, None)


def advice(kind: str, path: pathlib.Path) -> str:
    """Ways to read data of a kind that `kind_of` names, at `path`, as a corpus."""
    (how,) = (how for name, _, how in _KINDS if name == kind)
    return how.format(path=path)
