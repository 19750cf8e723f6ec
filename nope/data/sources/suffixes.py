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
    ('JSON lines', '|'.join(map(re.escape, JSON_LINES)), 'name it as jsonl:{path}'),
    ('Parquet files', '|'.join(map(re.escape, PARQUET)), 'name it as parquet:{path}'),
    (
        'Arrow files, as datasets.save_to_disk writes them',
        r'\.arrow',
        "export it first, with datasets.load_from_disk('{path}') and to_json or to_parquet, and "
        'name that file as jsonl:FILE or parquet:FILE',
    ),
    ('TensorFlow Datasets', r'\.(tfrecord|array_record)-\d+-of-\d+', 'name it as tfds:{path}'),
    ('token shards', r'\.array_record', 'name it as shards:{path}'),
    ('packed files', r'\.(gz|zstd?|bz2|xz|lz4|br|tar|tgz|zip|7z)', 'unpack it'),
)


def ends_in(file: pathlib.PurePath, suffixes: tuple[str, ...]) -> bool:
    """Whether a file's name ends in one of the suffixes."""
    return file.name.lower().endswith(suffixes)


def kind_of(file: pathlib.PurePath) -> str | None:
    """What a file is, 'JSON lines' say, where it is data of a kind that is told by its name."""
    kinds = (kind for kind, end, _ in _KINDS if re.search(f'({end})$', file.name.lower()))
    return next(kinds, None)


def advice(kind: str, path: pathlib.Path) -> str:
    """How data of a kind that `kind_of` names, at `path`, become a corpus."""
    (how,) = (how for name, _, how in _KINDS if name == kind)
    return how.format(path=path)
