"""Text files: one file, one document.

Every file of the folder counts, whatever its suffix, but hidden and packed ones and those with a
NUL byte among their first 8 KiB. A single file of that kind is refused. UTF-16 with a byte order
mark is read as UTF-8; marks are no text. A file above 64 MiB is cut at line breaks into documents
of about that size.

Splits: folders named train, validation and test where there are any (`splits.named_splits`).
Otherwise a hash of the relative path decides, 90/5/5. If that leaves a split empty, or training
with less than half of the bytes, the position decides: the first 90 % of each file train. Files
with too few lines for that are ordered by these hashes, one for validation and one for test.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, ClassVar

from nope.data import digest, splits
from nope.data.sources import folders, left_out, suffixes
from nope.data.sources.base import PART_BYTES, FileSource
from nope.runtime import files
from nope.runtime.saying import say

DOCUMENT_BYTES = 64 << 20
LEAST_TRAINED = 0.5  # share of the bytes that a split by hash leaves for training
_LINE_SEARCH_BYTES = 64 << 10
_BINARY_SEARCH_BYTES = 8 << 10
_PACKED = (b'\x1f\x8b', b'BZh91AY&SY', b'\xfd7zXZ', b'\x28\xb5\x2f\xfd')  # how packed files begin


@dataclasses.dataclass(frozen=True)
class Text(FileSource):
    """One text file or a folder of them."""

    kind: ClassVar[str] = 'text'

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> list[TextPart]:
        names, declared = self._files()
        path = pathlib.Path(self.path)
        found = declared or _splits(path, names)
        return [
            part
            for name in names
            for part in _parts_of(folders.resolve(path, name), found.get(name))
        ]

    def walked(self) -> pathlib.Path:
        return pathlib.Path(self.path)

    def _files(self) -> tuple[list[str], dict[str, str]]:
        path = pathlib.Path(self.path)
        try:
            reason = self.refusal(path) if path.is_file() else None
        except files.ContentError as error:
            raise ValueError(f'{self.name()}: {error}') from error
        if reason is not None:
            kind = suffixes.kind_of(path)
            how = 'unpack it, or write it as UTF-8 (UTF-16 needs its byte order mark)'
            raise ValueError(
                f'{self.name()}: {self.path} is no text but {reason}; '
                f'{suffixes.advice(kind, path) if kind else how}'
            )
        found = super()._files()
        warn_of_data(self.name(), path, found[0])
        return found

    def refusal(self, path: pathlib.Path) -> str | None:
        """Reason that a file is no text, whatever its name: it has a NUL byte in its first 8 KiB,
        is packed, or begins as UTF-16 and is none. ContentError for UTF-16 that is too large."""
        try:
            with files.open_utf8(path) as file:
                begin = file.read(_BINARY_SEARCH_BYTES)
        except UnicodeDecodeError:
            return left_out.UNREADABLE
        return left_out.BINARY if b'\0' in begin or begin.startswith(_PACKED) else None


@dataclasses.dataclass(frozen=True)
class TextPart:
    """The bytes [begin, end) of a file, both moved on to the next line start: one document."""

    path: str
    begin: int
    end: int
    split: str

    @property
    def size(self) -> int:
        return self.end - self.begin

    def bounds(self, file: BinaryIO) -> tuple[int, int]:
        """Byte offsets of its text in the open file, both at line starts."""
        return _line_start(file, self.begin), _line_start(file, self.end)

    def documents(self) -> Iterator[tuple[str, bytes]]:
        with files.open_utf8(pathlib.Path(self.path)) as file:
            begin, end = self.bounds(file)
            file.seek(begin)
            text = file.read(end - begin)
        yield self.split, files.without_mark(text) if begin == 0 else text


def warn_of_data(name: str, path: pathlib.Path, found: Sequence[str]) -> None:
    """Says where most of the files at `path` are data that another source reads, and would be text
    here, syntax and all. name: of the path's field. found: their names."""
    kinds = collections.Counter(suffixes.kind_of(pathlib.PurePath(file)) for file in found)
    kind, count = kinds.most_common(1)[0]
    if kind is not None and 2 * count > len(found):
        how = suffixes.advice(kind, path)
        say(logging.WARNING, f'{name}: {path} is read as plain text; {how}')


def _splits(path: pathlib.Path, names: Sequence[str]) -> dict[str, str]:
    """Splits of whole files that are not empty; {} where each is cut by position."""
    paths = {name: folders.resolve(path, name) for name in names}
    sizes = {name: size for name, file in paths.items() if (size := files.utf8_size(file))}
    found = {name: splits.split_of(name.encode()) for name in sizes}
    trained = sum(size for name, size in sizes.items() if found[name] == 'train')
    every = set(found.values()) == set(splits.SPLITS)
    if every and trained >= LEAST_TRAINED * sum(sizes.values()):
        return found
    if len(sizes) < len(splits.SPLITS) or _fills_all(paths.values()):
        return {}
    *train, validation, test = sorted(sizes, key=lambda name: digest.fraction(name.encode()))
    return dict.fromkeys(train, 'train') | {validation: 'validation', test: 'test'}


def _fills_all(paths: Iterable[pathlib.Path]) -> bool:
    """Whether files that are cut by position leave text in every split."""
    filled = set()
    for path in paths:
        with files.open_utf8(path) as file:
            for part in _parts_of(path, None):
                begin, end = part.bounds(file)
                filled |= {part.split} if end > begin else set()
        if len(filled) == len(splits.SPLITS):
            return True
    return False


def _parts_of(file: pathlib.Path, split: str | None) -> list[TextPart]:
    """A file in parts of one split, or for None cut into the three by position."""
    size = files.utf8_size(file)
    if split is not None:
        return _parts(file, 0, size, split)
    cuts = [0, int(size * splits.TRAIN_SHARE)]
    cuts += [int(size * (splits.TRAIN_SHARE + splits.VALIDATION_SHARE)), size]
    spans = zip(splits.SPLITS, cuts[:-1], cuts[1:], strict=True)
    return [part for split, begin, end in spans for part in _parts(file, begin, end, split)]


def _parts(file: pathlib.Path, begin: int, end: int, split: str) -> list[TextPart]:
    starts = range(begin, end, DOCUMENT_BYTES)
    return [TextPart(str(file), s, min(s + DOCUMENT_BYTES, end), split) for s in starts]


def _line_start(file: BinaryIO, offset: int) -> int:
    """The first line start at or after `offset`; where no line ends nearby, the first
    character start."""
    if offset == 0:
        return 0
    file.seek(offset - 1)
    ahead = file.read(_LINE_SEARCH_BYTES)
    line_end = ahead.find(b'\n')
    if line_end >= 0:
        return offset + line_end
    if len(ahead) < _LINE_SEARCH_BYTES:  # the last line of the file
        return offset - 1 + len(ahead)
    continuation = 1
    while continuation < 4 and ahead[continuation] & 0xC0 == 0x80:
        continuation += 1
    return offset - 1 + continuation
