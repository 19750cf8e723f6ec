"""The Python standard library's own source files: real text that every machine has."""

from __future__ import annotations

import os
import pathlib
import platform
import sysconfig
from typing import Any

from nope.data import folders

BUILDER_VERSION = '1.0.0'
_SKIPPED_FOLDERS = ('site-packages', 'dist-packages', '__pycache__')


def folder() -> pathlib.Path:
    """The standard library's folder, the base interpreter's where this is a virtual one."""
    return pathlib.Path(sysconfig.get_path('stdlib'))


def files(root: pathlib.Path) -> list[str]:
    """Relative POSIX paths of the library's `*.py` files, sorted.

    Installed packages are left out, and so is what the build generates (`_sysconfigdata*`,
    `config-*/`), which differs between two machines with the same Python.
    """
    found = []
    for parent, children, names in os.walk(root):
        children[:] = [c for c in children if not _is_skipped(c)]
        for name in names:
            if name.endswith('.py') and not name.startswith('_sysconfigdata'):
                path = pathlib.Path(parent, name)
                if path.is_file():
                    found.append(path.relative_to(root).as_posix())
    return sorted(found)


def split_of(relative_path: str) -> str:
    """The split of a file, by a hash of its relative path alone: a file that two Python
    versions share falls into the same split in both."""
    return folders.split_of(relative_path.encode())


def identity() -> dict[str, Any]:
    """Content identity: Python and builder versions, and a digest of names and contents
    (distributions drop parts of the library, such as its tests).

    Raises FileNotFoundError where the interpreter comes without its sources.
    """
    root = folder()
    names = files(root)
    if not names:
        raise FileNotFoundError(
            f'data.sources: kind stdlib: no *.py file under {root}; name another source'
        )
    return folders.identity(
        'stdlib', root, names, python=platform.python_version(), builder=BUILDER_VERSION
    )


def _is_skipped(name: str) -> bool:
    return name in _SKIPPED_FOLDERS or name.startswith('config-')
