"""Rows of Parquet files as documents.

Splits: by file name (`train-00000-of-00010.parquet`, `validation/...`, see
`folders.named_splits`) or by a hash of the text, 90/5/5.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

from nope.data import folders

_ROWS_AT_ONCE = 256


@dataclasses.dataclass(frozen=True)
class ParquetPart:
    """The row groups [begin, end) of a file."""

    path: str
    begin: int
    end: int
    size: int
    field: str
    split: str | None

    def documents(self) -> Iterator[tuple[str, bytes]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            groups = list(range(self.begin, self.end))
            for rows in file.iter_batches(_ROWS_AT_ONCE, groups, columns=[self.field]):
                for text in rows.column(0).cast(pa.large_binary()).to_pylist():
                    if text is not None:
                        yield self.split or folders.split_of(text), text


def list_names(name: str, path: pathlib.Path) -> list[str]:
    """The corpus' files; errors as `folders.list_files`."""
    names = folders.list_files(name, path, lambda file: file.suffix == '.parquet')
    return sorted(folders.named_splits(names)) or names


def list_parts(name: str, path: pathlib.Path, field: str, part_bytes: int) -> list[ParquetPart]:
    """The corpus in parts of whole row groups, about `part_bytes` each. Raises ValueError for
    what is not Parquet or has no column of text called `field`."""
    names = list_names(name, path)
    splits = folders.named_splits(names)
    parts = []
    for file_name in names:
        file = folders.resolve(path, file_name)
        sizes = _row_group_sizes(name, file, field)
        begin = size = 0
        for group, group_size in enumerate(sizes):
            size += group_size
            if size >= part_bytes or group == len(sizes) - 1:
                split = splits.get(file_name)
                parts.append(ParquetPart(str(file), begin, group + 1, size, field, split))
                begin, size = group + 1, 0
    return parts


def _row_group_sizes(name: str, path: pathlib.Path, field: str) -> list[int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f'{name}.path: {path} is not a Parquet file ({error})') from error
    if field not in schema.names or not _is_text(schema.field(field).type):
        raise ValueError(
            f'{name}.field={field!r}: no such column of text in {path.name}; its columns are '
            + ', '.join(f'{column.name} ({column.type})' for column in schema)
        )
    return [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    binary = (pa.types.is_binary, pa.types.is_large_binary)
    return any(check(kind) for check in (*checks, *binary))
