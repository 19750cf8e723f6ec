"""JSON lines, plain or packed: one object per line, one document each.

Splits: by file name (`train.jsonl`, `validation/...`, see `splits.named_splits`) or by a hash
of the text, 90/5/5, so that copies of a text share a split.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar

from nope.data import splits
from nope.data.sources import folders, packed, suffixes
from nope.data.sources.base import MAX_LINE_BYTES, PART_BYTES, FileSource
from nope.runtime import files

_SKIP_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class JsonLines(FileSource):
    """A file or folder of JSON lines; `field` holds the text.

    leave_out: (field, value) pairs; a line whose field has the value is no document. A point goes
        into an object: ('meta.redpajama_set_name', 'RedPajamaGithub') of SlimPajama. A line without
        the field is refused, so that no misspelled one lets everything in.
    max_line_bytes: of a line, unpacked, with its line end. A longer one is refused before all of
        it is read: a packed file of a few megabytes can hold one that fills the memory.
    """

    kind: ClassVar[str] = 'jsonl'
    endings: ClassVar[tuple[str, ...]] = suffixes.JSON_LINES
    field: str = 'text'
    leave_out: tuple[tuple[str, Any], ...] = ()
    max_line_bytes: int = dataclasses.field(default=MAX_LINE_BYTES, metadata={'identity': False})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.need('field', self.field, 'the field of a line that holds the text')
        self.check_limit(self.max_line_bytes)
        for pair in self.leave_out:
            match pair:
                case (str(name), str() | bool() | int() | float()) if all(name.split('.')):
                    continue
            raise ValueError(
                f'{self.name("leave_out")}: {pair!r} is no rule; accepted: pairs of a field '
                "and its text, number, true or false, as in (('meta.set', 'Github'),)"
            )

    def identity(self) -> dict[str, Any]:
        rules = {'leave_out': [list(pair) for pair in self.leave_out]} if self.leave_out else {}
        return super().identity() | {'field': self.field, **rules}

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> list[JsonLinesPart]:
        """Parts of `part_bytes` of a plain file, or of a packed file each."""
        names, declared = self._files()
        parts = []
        for name in names:
            file = folders.resolve(pathlib.Path(self.path), name)
            split = declared.get(name)
            if packed.is_packed(file):
                parts.append(JsonLinesPart(self, str(file), 0, file.stat().st_size, split))
                continue
            size = packed.size(self.name(), file)
            for begin in range(0, size, part_bytes):
                end = min(begin + part_bytes, size)
                parts.append(JsonLinesPart(self, str(file), begin, end, split))
        return parts

    def walked(self) -> pathlib.Path:
        return pathlib.Path(self.path)

    def _files(self) -> tuple[list[str], dict[str, str]]:
        path = pathlib.Path(self.path)
        if path.is_file() and self.refusal(path):
            raise ValueError(
                f'{self.name()}: {self.path!r} must end in one of {", ".join(self.endings)}'
            )
        return super()._files()


@dataclasses.dataclass(frozen=True)
class JsonLinesPart:
    """The lines that start in the bytes [begin, end) of a plain file, or in a packed file."""

    source: JsonLines
    path: str
    begin: int
    end: int
    split: str | None

    @property
    def size(self) -> int:
        return self.end - self.begin

    def documents(self) -> Iterator[tuple[str, bytes]]:
        path = pathlib.Path(self.path)
        end = None if packed.is_packed(path) else self.end
        rules = self.source.leave_out
        with packed.opened(self.source.name(), path) as file:
            for offset, line in _lines(file, self.begin, end, self.source.max_line_bytes):
                if len(line) > self.source.max_line_bytes:
                    raise ValueError(
                        f'{self._place(offset)}: the line is longer than '
                        f'{self.source.name("max_line_bytes")}={self.source.max_line_bytes}; '
                        'give that a higher value if it is a document all the same'
                    )
                line = files.without_mark(line) if offset == 0 else line
                if line.strip():
                    row = self._row(offset, line)
                    if not any(_is(self._value(offset, row, n), value) for n, value in rules):
                        text = self._text(offset, row)
                        yield self.split or splits.split_of(text), text

    def _place(self, offset: int) -> str:
        return f'{self.source.name()}: {self.path} at byte {offset}'

    def _row(self, offset: int, line: bytes) -> Any:
        try:
            return files.parse_json(line)
        except ValueError as error:
            raise ValueError(f'{self._place(offset)}: not a line of JSON ({error})') from error

    def _value(self, offset: int, row: Any, name: str) -> Any:
        """Of a field that a rule names; ValueError for a row without it."""
        found = row
        for key in name.split('.'):
            if not isinstance(found, dict) or key not in found:
                raise ValueError(
                    f'{self._place(offset)}: no field {name!r}, which '
                    f'{self.source.name("leave_out")} names'
                )
            found = found[key]
        if isinstance(found, dict | list):
            raise ValueError(
                f'{self._place(offset)}: {self.source.name("leave_out")} names {name!r}, which is '
                f'{_kind(found)}; accepted: a field that is a text, a number, true, false or null'
            )
        return found

    def _text(self, offset: int, row: Any) -> bytes:
        field = self.source.field
        if isinstance(row, dict) and isinstance(row.get(field), str):
            return row[field].encode('utf-8', 'replace')
        found = f'the line is {_kind(row)}'
        if isinstance(row, dict):
            holds = field in row
            found = f'it holds {_kind(row[field])}' if holds else f'it has the fields {sorted(row)}'
        where = self._place(offset)
        raise ValueError(f'{where}: no text in {self.source.name("field")}={field!r}; {found}')


def _is(found: Any, wanted: Any) -> bool:
    """Whether a value is what a rule says; a text is also what JSON or Python writes of a number
    or so."""
    if isinstance(wanted, str):
        spelt = (found,) if isinstance(found, str) else (json.dumps(found), str(found))
        return wanted in spelt
    return type(found) is type(wanted) and found == wanted


def _kind(value: Any) -> str:
    """A JSON value's kind, as JSON's own grammar calls it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds: dict[type, str] = {str: 'a text', list: 'an array', dict: 'an object'}
    return kinds.get(type(value), 'a number')


def _lines(file: BinaryIO, begin: int, end: int | None, limit: int) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of the lines that start in [begin, end), to the end of file for None; of a
    line above `limit` bytes at least one more than these."""
    offset = begin
    if begin > 0:
        file.seek(begin - 1)
        offset = begin - 1
        while piece := file.readline(_SKIP_BYTES):
            offset += len(piece)
            if piece.endswith(b'\n') or (end is not None and offset >= end):
                break
    while end is None or offset < end:
        line = file.readline(limit + 1)
        if not line:
            return
        yield offset, line
        offset += len(line)
