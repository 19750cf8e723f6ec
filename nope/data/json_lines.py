"""JSON lines as documents, plain, gzip or Zstandard: one object per line.

Splits: by file name (`train.jsonl`, `validation/...`, see `folders.named_splits`) or by a hash
of the text, 90/5/5, so that copies of a text share a split.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import pathlib
from collections.abc import Iterator
from typing import BinaryIO

from nope.data import folders

SUFFIXES = tuple(
    f'.{form}{packing}' for form in ('jsonl', 'ndjson', 'json') for packing in ('', '.gz', '.zst')
)


@dataclasses.dataclass(frozen=True)
class JsonLinesPart:
    """The lines that start in the bytes [begin, end) of a plain file, or in a packed file."""

    name: str
    path: str
    begin: int
    end: int
    field: str
    split: str | None

    @property
    def size(self) -> int:
        return self.end - self.begin

    def documents(self) -> Iterator[tuple[str, bytes]]:
        with _open(pathlib.Path(self.path)) as file:
            for offset, line in _lines(file, self.begin, None if self._packed else self.end):
                if line.strip():
                    text = self._text(offset, line)
                    yield self.split or folders.split_of(text), text

    @property
    def _packed(self) -> bool:
        return not self.path.endswith(('.jsonl', '.ndjson', '.json'))

    def _text(self, offset: int, line: bytes) -> bytes:
        where = f'{self.name}.path: {pathlib.Path(self.path).name} at byte {offset}'
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f'{where}: not a line of JSON ({error})') from error
        if not isinstance(row, dict) or not isinstance(row.get(self.field), str):
            has = f'the fields {sorted(row)}' if isinstance(row, dict) else 'no fields'
            raise ValueError(f'{where}: no text in {self.name}.field={self.field!r}; it has {has}')
        return row[self.field].encode('utf-8', 'replace')


def list_names(name: str, path: pathlib.Path) -> list[str]:
    """The corpus' files; errors as `folders.list_files`, ValueError for another suffix."""
    names = folders.list_files(name, path, _is_json_lines)
    if not all(file.endswith(SUFFIXES) for file in names):
        raise ValueError(f'{name}.path={str(path)!r}: must end in one of {", ".join(SUFFIXES)}')
    return sorted(folders.named_splits(names)) or names


def list_parts(name: str, path: pathlib.Path, field: str, part_bytes: int) -> list[JsonLinesPart]:
    """The corpus in parts: `part_bytes` of a plain file, or a packed file."""
    names = list_names(name, path)
    splits = folders.named_splits(names)
    parts = []
    for file_name in names:
        file = folders.resolve(path, file_name)
        size = file.stat().st_size
        step = size if file_name.endswith(('.gz', '.zst')) else part_bytes
        for begin in range(0, size, max(step, 1)):
            end = min(begin + step, size)
            split = splits.get(file_name)
            parts.append(JsonLinesPart(name, str(file), begin, end, field, split))
    return parts


def _is_json_lines(path: pathlib.Path) -> bool:
    return path.name.endswith(SUFFIXES)


def _open(path: pathlib.Path) -> BinaryIO:
    if path.suffix == '.gz':
        return gzip.open(path, 'rb')  # type: ignore[return-value]
    if path.suffix == '.zst':
        import zstandard

        stream = zstandard.ZstdDecompressor().stream_reader(
            path.open('rb'), read_across_frames=True, closefd=True
        )
        return io.BufferedReader(stream, 1 << 20)  # type: ignore[arg-type]
    return path.open('rb')


def _lines(file: BinaryIO, begin: int, end: int | None) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of the lines that start in [begin, end), to the end of file for None."""
    offset = begin
    if begin > 0:
        file.seek(begin - 1)
        offset += len(file.readline()) - 1
    while end is None or offset < end:
        line = file.readline()
        if not line:
            return
        yield offset, line
        offset += len(line)
