"""Text files as documents: one file, one document.

Every file of the folder that is not hidden counts, whatever its suffix, unless a NUL byte among
its first 8 KiB says that it is not text (UTF-16 is not read). A file above 64 MiB is cut
at line breaks into documents of about that size.

Splits: folders named train, validation and test where there are any (`folders.named_splits`).
Otherwise by a hash of the relative path, 90/5/5; where a few files leave a split empty, by the
order of these hashes, one file for validation and one for test; and where there are one or two
files only, by position, the first 90 % of each file for training.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from nope.data import config, digest, folders

PIECE_BYTES = 64 << 20
_LINE_SEARCH_BYTES = 64 << 10
_BINARY_SEARCH_BYTES = 8 << 10


@dataclasses.dataclass(frozen=True)
class Piece:
    """The bytes [begin, end) of a file, both moved on to the next line start."""

    path: str
    begin: int
    end: int
    split: str


@dataclasses.dataclass(frozen=True)
class TextPart:
    """Consecutive pieces."""

    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        return sum(piece.end - piece.begin for piece in self.pieces)

    def documents(self) -> Iterator[tuple[str, bytes]]:
        for piece in self.pieces:
            with open(piece.path, 'rb') as file:
                begin = _line_start(file, piece.begin)
                end = _line_start(file, piece.end)
                file.seek(begin)
                yield piece.split, file.read(end - begin)


def list_names(name: str, path: pathlib.Path) -> list[str]:
    """The corpus' files; errors as `folders.list_files`."""
    names = folders.list_files(name, path, _is_text)
    return sorted(folders.named_splits(names)) or names


def list_parts(name: str, path: pathlib.Path, part_bytes: int) -> list[TextPart]:
    """The corpus in parts of about `part_bytes`; errors as `folders.list_files`."""
    names = list_names(name, path)
    splits = folders.named_splits(names) or _hashed_splits(names)
    pieces: list[Piece] = []
    for file_name in names:
        file = folders.resolve(path, file_name)
        size = file.stat().st_size
        if file_name in splits:
            pieces += _pieces(file, 0, size, splits[file_name])
        else:
            cuts = [0, int(size * folders.TRAIN_SHARE)]
            cuts += [int(size * (folders.TRAIN_SHARE + folders.VALIDATION_SHARE)), size]
            for split, begin, end in zip(config.SPLITS, cuts[:-1], cuts[1:], strict=True):
                pieces += _pieces(file, begin, end, split)
    return [TextPart(tuple(group)) for group in _group(pieces, part_bytes)]


def _is_text(path: pathlib.Path) -> bool:
    with path.open('rb') as file:
        return b'\0' not in file.read(_BINARY_SEARCH_BYTES)


def _hashed_splits(names: Sequence[str]) -> dict[str, str]:
    """Splits by hash; {} where there are too few files to have three."""
    if len(names) < len(config.SPLITS):
        return {}
    splits = {name: folders.split_of(name.encode()) for name in names}
    if len(set(splits.values())) == len(config.SPLITS):
        return splits
    *train, validation, test = sorted(names, key=lambda name: digest.fraction(name.encode()))
    return dict.fromkeys(train, 'train') | {validation: 'validation', test: 'test'}


def _pieces(file: pathlib.Path, begin: int, end: int, split: str) -> list[Piece]:
    starts = range(begin, end, PIECE_BYTES)
    return [Piece(str(file), s, min(s + PIECE_BYTES, end), split) for s in starts]


def _group(pieces: Iterable[Piece], part_bytes: int) -> Iterator[list[Piece]]:
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        group.append(piece)
        size += piece.end - piece.begin
        if size >= part_bytes:
            yield group
            group, size = [], 0
    if group:
        yield group


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
