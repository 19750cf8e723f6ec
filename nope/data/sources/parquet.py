"""Parquet files: one row, one document.

Splits: by file name (`train-00000-of-00010.parquet`, `validation/...`, see
`splits.named_splits`) or by a hash of the text, 90/5/5.

A file that is cut short, has lost rows or fails a check of its own is refused. Pages written
without checksums (most are) have no check of their content: a changed byte may change a text.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar

from nope.data import splits
from nope.data.sources import folders, suffixes
from nope.data.sources.base import MAX_LINE_BYTES, PART_BYTES, FileSource

_ROWS_AT_ONCE = 256


@dataclasses.dataclass(frozen=True)
class Parquet(FileSource):
    """A file or folder of Parquet files; the column `field` holds the text.

    max_line_bytes: of a text. A longer one is refused.
    """

    kind: ClassVar[str] = 'parquet'
    endings: ClassVar[tuple[str, ...]] = suffixes.PARQUET
    field: str = 'text'
    max_line_bytes: int = dataclasses.field(default=MAX_LINE_BYTES, metadata={'identity': False})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.need('field', self.field, 'the column that holds the text')
        self.check_limit(self.max_line_bytes)

    def identity(self) -> dict[str, Any]:
        return super().identity() | {'field': self.field}

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> list[ParquetPart]:
        """Parts of whole row groups. Raises ValueError too for what is not Parquet or has no column
        of text called `field`."""
        names, declared = self._files()
        parts = []
        for name in names:
            file = folders.resolve(pathlib.Path(self.path), name)
            sizes = self._row_group_sizes(file)
            begin = size = 0
            for group, group_size in enumerate(sizes):
                size += group_size
                if size >= part_bytes or group == len(sizes) - 1:
                    split = declared.get(name)
                    parts.append(ParquetPart(self, str(file), begin, group + 1, size, split))
                    begin, size = group + 1, 0
        return parts

    def _row_group_sizes(self, path: pathlib.Path) -> list[int]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
                groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
                names = schema.names
        except (pa.ArrowException, OSError, ValueError) as error:
            raise ValueError(f'{self.name()}: {path} is not a Parquet file ({error})') from error
        if sum(group.num_rows for group in groups) != metadata.num_rows:
            raise ValueError(
                f'{self.name()}: {path} is damaged: its row groups have not the '
                f'{metadata.num_rows} rows that it says it has'
            )
        kind = schema.field(self.field).type if self.field in names else pa.null()
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        binary = (pa.types.is_binary, pa.types.is_large_binary)
        if not any(check(kind) for check in (*strings, *binary)):
            raise ValueError(
                f'{self.name("field")}={self.field!r}: no such column of text in {path}; its '
                'columns are ' + ', '.join(f'{column.name} ({column.type})' for column in schema)
            )
        return [group.total_byte_size for group in groups]


@dataclasses.dataclass(frozen=True)
class ParquetPart:
    """The row groups [begin, end) of a file."""

    source: Parquet
    path: str
    begin: int
    end: int
    size: int
    split: str | None

    def documents(self) -> Iterator[tuple[str, bytes]]:
        import pyarrow as pa

        place = f'{self.source.name()}: {self.path}'
        try:
            for row, text in self._rows():
                if text is None:
                    named = f'{self.source.name("field")}={self.source.field!r}'
                    raise ValueError(f'{place} row {row}: no text in {named}; it holds null')
                if len(text) > self.source.max_line_bytes:
                    limit = self.source.name('max_line_bytes')
                    raise ValueError(
                        f'{place}: row {row} has {len(text)} bytes, more than '
                        f'{limit}={self.source.max_line_bytes} has room for; give that a higher '
                        'value if these are documents all the same'
                    )
                yield self.split or splits.split_of(text), text
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise ValueError(f'{place} is damaged: {error}') from error

    def _rows(self) -> Iterator[tuple[int, bytes | None]]:
        """(number in the file, text) of every row."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
            ends = [0]
            for group in range(self.end):
                ends.append(ends[-1] + file.metadata.row_group(group).num_rows)
            row = ends[self.begin]
            groups = list(range(self.begin, self.end))
            for rows in file.iter_batches(_ROWS_AT_ONCE, groups, columns=[self.source.field]):
                column = rows.column(0)
                if pa.types.is_dictionary(column.type):
                    column = column.dictionary_decode()
                for text in column.cast(pa.large_binary()).to_pylist():
                    yield row, text
                    row += 1
        read, there = row - ends[self.begin], ends[-1] - ends[self.begin]
        if read != there:
            raise OSError(f'it holds {read} rows of text, not {there}')
