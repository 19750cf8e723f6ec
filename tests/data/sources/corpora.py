"""Small corpora on disk, and everything that a source reads of one."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from nope.data.sources import Source

COMPRESSORS = {
    '.gz': gzip.compress,
    '.bz2': bz2.compress,
    '.xz': lzma.compress,
    '.zst': zstandard.compress,
    '.zstd': zstandard.compress,
}
ROWS = [f'row {i}: ' + 'some words and more ' * (i % 7 + 1) for i in range(200)]


def read_all(source: Source, tmp_path: pathlib.Path, part_bytes: int = 1 << 20):
    """(split, text) of every document."""
    parts = source.list_parts(tmp_path / 'cache', part_bytes)
    return [document for part in parts for document in part.documents()]


def texts_of(documents, split=None) -> list[str]:
    return [text.decode() for kind, text in documents if split in (None, kind)]


def write_jsonl(path: pathlib.Path, rows=ROWS, field: str = 'text') -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = ''.join(json.dumps({field: row, 'id': i}) + '\n' for i, row in enumerate(rows))
    data = content.encode()
    if path.suffix in COMPRESSORS:  # two members or frames, as a parallel compressor leaves them
        half = len(data) // 2
        compress = COMPRESSORS[path.suffix]
        data = compress(data[:half]) + compress(data[half:])
    path.write_bytes(data)


def write_parquet(path: pathlib.Path, rows=ROWS, field: str = 'text') -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({field: rows, 'id': list(range(len(rows)))})
    pq.write_table(table, path, row_group_size=16)
