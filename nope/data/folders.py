"""What sources made of files have in common: listing, splits, identity."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from nope.data import digest

PART_BYTES = 64 << 20
TRAIN_SHARE, VALIDATION_SHARE = 0.90, 0.05
_SPLIT_NAMES = {
    'train': 'train',
    'validation': 'validation',
    'valid': 'validation',
    'val': 'validation',
    'dev': 'validation',
    'test': 'test',
}
_SPLIT_FILE = re.compile(rf'({"|".join(_SPLIT_NAMES)})([-.].*)?')


class Part(Protocol):
    """Documents that are read and tokenised in one go, by one process.

    A corpus is always the same sequence of parts, however many processes work on it. Parts
    are picklable and hold no text.
    """

    @property
    def size(self) -> int:
        """Bytes to read, as far as they are known beforehand (for a progress bar)."""
        ...

    def documents(self) -> Iterable[tuple[str, bytes]]:
        """(split, text) of each document, in a fixed order."""
        ...


@dataclasses.dataclass(frozen=True)
class _OfSplit:
    """The documents of a part that belong to one split."""

    part: Part
    split: str

    @property
    def size(self) -> int:
        return self.part.size

    def documents(self) -> Iterator[tuple[str, bytes]]:
        return (found for found in self.part.documents() if found[0] == self.split)


def of_split(parts: Sequence[Part], split: str) -> list[Part]:
    """One split of a corpus; parts that say they belong to another one are left out."""
    return [
        _OfSplit(part, split) for part in parts if getattr(part, 'split', None) in (None, split)
    ]


def list_files(name: str, path: pathlib.Path, keep: Callable[[pathlib.Path], bool]) -> list[str]:
    """POSIX paths relative to the folder `path` of the files that `keep` accepts, sorted.

    A single file is its own name, and is accepted unasked. Hidden files and folders (a leading
    dot) are left out; links to folders are not followed. Raises FileNotFoundError where there
    is nothing at `path`, ValueError where nothing in it is accepted, PermissionError where
    something cannot be read; all name the field `<name>.path`.
    """
    field = f'{name}.path={str(path)!r}'
    if path.is_file():
        return [path.name]
    if not path.is_dir():
        raise FileNotFoundError(f'{field}: there is no such file or folder')

    def refuse(error: OSError) -> None:
        raise PermissionError(f'{field}: cannot read {error.filename}: {error.strerror}')

    found = []
    for parent, folders, names in os.walk(path, onerror=refuse):
        folders[:] = [f for f in folders if not f.startswith('.')]
        for file_name in names:
            file = pathlib.Path(parent, file_name)
            if file_name.startswith('.') or not file.is_file():
                continue
            if not os.access(file, os.R_OK):
                raise PermissionError(f'{field}: cannot read {file}')
            if keep(file):
                found.append(file.relative_to(path).as_posix())
    if not found:
        raise ValueError(f'{field}: the folder holds no file of this kind')
    return sorted(found)


def resolve(path: pathlib.Path, relative: str) -> pathlib.Path:
    """The file that `list_files` called `relative`."""
    return path if path.is_file() else path / relative


def named_splits(names: Sequence[str]) -> dict[str, str]:
    """{file: split} where a folder declares its splits by name, else {}.

    A name declares a split by its top-level folder (`validation/...`) or, at the top level,
    by how it begins (`validation.jsonl`, `train-00000-of-00010.parquet`); valid, val and dev
    stand for validation too. It counts where train and at least one other split are declared;
    files outside of the declared splits are then not part of the corpus. It counts too where every
    file declares a split and none is train: a corpus to measure on.
    """
    splits = {}
    for name in names:
        head, slash, _ = name.partition('/')
        match = _SPLIT_FILE.fullmatch(head)
        if (slash and head in _SPLIT_NAMES) or (not slash and match):
            splits[name] = _SPLIT_NAMES[head if slash else match[1]]  # type: ignore[index]
    declared = set(splits.values())
    only_measured = len(splits) == len(names) and 'train' not in declared
    return splits if only_measured or ('train' in declared and len(declared) > 1) else {}


def split_of(identity: bytes) -> str:
    """90 % train, 5 % validation, 5 % test, by a hash of what identifies a document."""
    place = digest.fraction(identity)
    if place < TRAIN_SHARE:
        return 'train'
    return 'validation' if place < TRAIN_SHARE + VALIDATION_SHARE else 'test'


def identity(kind: str, path: pathlib.Path, names: Sequence[str], **more: Any) -> dict[str, Any]:
    """Content identity of a corpus of files: their number and size and a digest of their
    relative names and contents. The place and the name of the folder do not count."""
    files = [resolve(path, name) for name in names]
    labels = names if path.is_dir() else ['']
    return {
        'kind': kind,
        'files': len(files),
        'bytes': sum(file.stat().st_size for file in files),
        'digest': digest.of_json(
            [[label, digest.of_file(file)] for label, file in zip(labels, files, strict=True)]
        ),
        **more,
    }
