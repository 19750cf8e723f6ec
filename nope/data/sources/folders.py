"""Files of a folder as a corpus: listing, splits declared by name, content identity."""

from __future__ import annotations

import functools
import logging
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from nope.data import digest
from nope.data.splits import loosely_named, named_splits

log = logging.getLogger(__name__)


def list_files(name: str, path: pathlib.Path, keep: Callable[[pathlib.Path], bool]) -> list[str]:
    """POSIX paths relative to the folder `path` of the files that `keep` accepts, sorted.

    A single file is its own name, and is accepted unasked. Hidden files and folders (a leading
    dot) are left out; links to folders are not followed. name: of the path's field in messages.
    Raises FileNotFoundError where there is nothing at `path`, ValueError where nothing in it is
    accepted or a name is not UTF-8, PermissionError where something cannot be read.
    """
    if path.is_file():
        _check_encodable(name, path)
        return [path.name]
    if not path.is_dir():
        raise FileNotFoundError(f'{name}: there is no file or folder {str(path)!r}')

    def refuse(error: OSError) -> None:
        raise PermissionError(f'{name}: cannot read {error.filename}: {error.strerror}')

    found = []
    for parent, folders, names in os.walk(path, onerror=refuse):
        folders[:] = [f for f in folders if not f.startswith('.')]
        for file_name in names:
            file = pathlib.Path(parent, file_name)
            if file_name.startswith('.') or not file.is_file():
                continue
            if not os.access(file, os.R_OK):
                raise PermissionError(f'{name}: cannot read {file}')
            if keep(file):
                _check_encodable(name, file)
                found.append(file.relative_to(path).as_posix())
    if not found:
        raise ValueError(f'{name}: the folder {str(path)!r} holds no file of this kind')
    return sorted(found)


def name_of(path: str) -> str:
    """The last name of a path, of '.' that of the folder."""
    return pathlib.PurePath(os.path.abspath(path)).name


def check_outside(name: str, path: pathlib.Path, folder: pathlib.Path) -> None:
    """ValueError where `folder` lies in the corpus at `path` and is not hidden: its files would be
    text of the corpus when that is listed again. name: of the corpus's field, for messages."""
    whole, inner = path.resolve(), folder.resolve()
    if not (whole.is_dir() and inner.is_relative_to(whole)):
        return
    if not any(part.startswith('.') for part in inner.relative_to(whole).parts):
        raise ValueError(
            f'{name}: {str(path)!r} holds {str(folder)!r}, into which is written: the corpus would '
            'be another one afterwards. Choose a folder outside of it'
        )


def list_corpus(
    name: str, path: pathlib.Path, keep: Callable[[pathlib.Path], bool]
) -> tuple[list[str], dict[str, str]]:
    """The files of a corpus, as `list_files`, and the splits that their names declare: {} for none,
    else only those files count."""
    names = list_files(name, path, keep)
    splits = named_splits(names)
    if 0 < len(splits) < len(names):
        _say_left_out(name, len(names), tuple(n for n in names if n not in splits))
    return sorted(splits) or names, splits


@functools.cache
def _say_left_out(name: str, files: int, left_out: tuple[str, ...]) -> None:
    """Once."""
    some = ', '.join(left_out[:3]) + (', ...' if len(left_out) > 3 else '')
    log.warning(
        '%s: the names of files declare splits; %d of %d files are in none of them and are left '
        'out: %s', name, len(left_out), files, some,
    )  # fmt: skip


def _check_encodable(name: str, file: pathlib.Path) -> None:
    """ValueError for a path that could not be written into a file or a message."""
    try:
        str(file).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f'{name}: {str(file)!r}: its name is not UTF-8; rename it') from error


def resolve(path: pathlib.Path, relative: str) -> pathlib.Path:
    """The file that `list_files` called `relative`."""
    return path if path.is_file() else path / relative


def identity(kind: str, path: pathlib.Path, names: Sequence[str], **more: Any) -> dict[str, Any]:
    """Content identity of a corpus of files: their number and size and a digest of their
    relative names and contents, and of splits that names declare but not in the plain form. The
    place and the name of the folder do not count."""
    in_folder = path.is_dir()
    files = [path / name for name in names] if in_folder else [path]
    splits = loosely_named(names) if in_folder else {}
    labels = [f'{splits[name]}:{name}' if splits else name for name in names]
    labels = labels if in_folder else ['']
    return {
        'kind': kind,
        'files': len(files),
        'bytes': sum(file.stat().st_size for file in files),
        'digest': digest.of_json(
            [[label, digest.of_file(file)] for label, file in zip(labels, files, strict=True)]
        ),
        **more,
    }
