"""Files of a folder as a corpus: listing, splits declared by name, content identity."""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nope.data import digest
from nope.data.sources import left_out, suffixes
from nope.data.splits import named_splits
from nope.runtime import files
from nope.runtime.saying import say

# Raise when other documents, or other splits of them, are read of the same files.
VERSION = 2

# Why a file is none of a corpus, one of the reasons of `left_out`; None for one that is.
Refusal = Callable[[pathlib.Path], str | None]


def list_files(name: str, path: pathlib.Path, refusal: Refusal) -> list[str]:
    """POSIX paths relative to the folder `path` of the files that are not refused, sorted.

    A single file is its own name, and is accepted unasked. Hidden files and folders (a leading
    dot) are left out. Links are followed, but for one to a folder that it lies in. What is left
    out is said. name: of the path's field in messages.
    Raises FileNotFoundError where there is nothing at `path`, PermissionError where something
    cannot be read. ValueError says that nothing in it is accepted, that it is a data set of another
    kind, that a file is a pointer of Git LFS, or that a name is not UTF-8.
    """
    if path.is_file():
        _check_file(name, path)
        return [path.name]
    if not path.is_dir():
        raise FileNotFoundError(f'{name}: there is no file or folder {str(path)!r}')

    found: list[str] = []
    without = left_out.LeftOut()
    for file, reason in _walk(name, path, refusal):
        relative = file.relative_to(path).as_posix()
        if reason is None and file.stat().st_size == 0:
            reason = left_out.EMPTY
        if reason is None:
            found.append(relative)
        else:
            without.add(reason, relative)
    if other := without.other_data(found):
        kind, data = other
        folder = path / os.path.commonpath([os.path.dirname(file) for file in data])
        raise ValueError(
            f'{name}: the folder {str(path)!r} is a data set of {kind} ({data[0]}); '
            f'{suffixes.advice(kind, folder)}'
        )
    if not found:
        raise ValueError(
            f'{name}: the folder {str(path)!r} holds no file of this kind; in it: {without}'
        )
    if without:
        level = logging.WARNING if without.surprises() else logging.INFO
        say(level, f'{name}: left out of {str(path)!r}: {without}')
    return sorted(found)


def name_of(path: str) -> str:
    """The last name of a path, of '.' that of the folder."""
    return pathlib.PurePath(os.path.abspath(path)).name


def check_outside(name: str, path: pathlib.Path, folder: pathlib.Path) -> None:
    """ValueError where `folder` lies in the corpus at `path`, links followed, and is not hidden:
    the next listing would read its files. name: of the corpus's field, for messages."""
    inner = folder.resolve()
    for parent, *_ in _folders(name, path):
        if parent != path and not parent.is_symlink():
            continue
        whole = parent.resolve()
        below = inner.relative_to(whole).parts if inner.is_relative_to(whole) else ('.',)
        if not any(part.startswith('.') for part in below):
            raise ValueError(
                f'{name}: {str(path)!r} holds {str(folder)!r}, into which is written: the corpus '
                'would be another one afterwards. Choose a folder outside of it'
            )


def list_corpus(
    name: str, path: pathlib.Path, refusal: Refusal
) -> tuple[list[str], dict[str, str]]:
    """The files of a corpus, as `list_files`, and the splits that their names declare: {} for none,
    else only those files count."""
    names = list_files(name, path, refusal)
    splits = named_splits(names)
    if 0 < len(splits) < len(names):
        others = [n for n in names if n not in splits]
        some = ', '.join(others[:3]) + (', ...' if len(others) > 3 else '')
        say(
            logging.WARNING,
            f'{name}: the names of files declare splits; {len(others)} of {len(names)} files are '
            f'in none of them and are left out: {some}',
        )
    return sorted(splits) or names, splits


def _walk(
    name: str, path: pathlib.Path, refusal: Refusal
) -> Iterator[tuple[pathlib.Path, str | None]]:
    """Every file of a folder has its reason to be left out, None for one that counts. Folders that
    are not entered have one too."""
    for parent, names, not_entered in _folders(name, path):
        yield from ((parent / child, reason) for child, reason in not_entered.items())
        for child in names:
            file = parent / child
            if child.startswith('.'):
                yield file, left_out.HIDDEN
            elif not file.is_file():
                yield file, left_out.BROKEN if file.is_symlink() else 'no regular file'
            elif not os.access(file, os.R_OK):
                raise PermissionError(f'{name}: cannot read {file}')
            else:
                try:
                    reason = refusal(file)
                except files.ContentError as error:
                    raise ValueError(f'{name}: {error}') from error
                if reason is None:
                    _check_file(name, file)
                yield file, reason


def _folders(
    name: str, path: pathlib.Path
) -> Iterator[tuple[pathlib.Path, list[str], dict[str, str]]]:
    """(folder, names of its files, reason by name of the folders in it that are not entered) of a
    folder and those in it, links followed; nothing of a file."""

    def refuse(error: OSError) -> None:
        raise PermissionError(f'{name}: cannot read {error.filename}: {error.strerror}')

    if not path.is_dir():
        return
    # Of a folder, itself and those around it.
    above: dict[str, tuple[tuple[int, int], ...]] = {str(path): (_number(path),)}
    for parent, folders, names in os.walk(path, onerror=refuse, followlinks=True):
        around = above.pop(parent)
        not_entered = {}
        for child in folders:
            folder = os.path.join(parent, child)
            if child.startswith('.'):
                not_entered[child] = left_out.HIDDEN
            elif (number := _number(folder)) in around:
                not_entered[child] = left_out.CYCLE
            else:
                above[folder] = (*around, number)
        folders[:] = [child for child in folders if child not in not_entered]
        yield pathlib.Path(parent), names, not_entered


def _number(folder: str | pathlib.Path) -> tuple[int, int]:
    """Device and number, the same under every name of a folder."""
    status = os.stat(folder)
    return status.st_dev, status.st_ino


def _check_file(name: str, file: pathlib.Path) -> None:
    """ValueError for a path that could not be written into a file or a message, and where Git LFS
    left a pointer."""
    try:
        str(file).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f'{name}: {str(file)!r}: its name is not UTF-8; rename it') from error
    try:
        files.check_present(file)
    except files.ContentError as error:
        raise ValueError(f'{name}: {error}') from error


def resolve(path: pathlib.Path, relative: str) -> pathlib.Path:
    """The file that `list_files` called `relative`."""
    return path if path.is_file() else path / relative


def identity(kind: str, path: pathlib.Path, names: Sequence[str], **more: Any) -> dict[str, Any]:
    """Content identity of a corpus of files: their number and size and a digest of their
    relative names and contents. The place and the name of the folder do not count, and of the name
    of a single file the split that it declares."""
    in_folder = path.is_dir()
    paths = [path / name for name in names] if in_folder else [path]
    labels = names if in_folder else [named_splits([path.name]).get(path.name, '')]
    return {
        'kind': kind,
        'version': VERSION,
        'files': len(paths),
        'bytes': sum(file.stat().st_size for file in paths),
        'digest': digest.of_json(
            [[label, digest.of_file(file)] for label, file in zip(labels, paths, strict=True)]
        ),
        **more,
    }
