"""The Python standard library's own source files: real text that every machine has."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import platform
import sysconfig
from collections.abc import Sequence
from typing import Any, ClassVar

from nope.data.sources import folders
from nope.data.sources.base import PART_BYTES, Part, Source
from nope.data.sources.tfds import Tfds
from nope.data.splits import split_of

BUILDER_VERSION = '1.0.0'
_SKIPPED_FOLDERS = ('site-packages', 'dist-packages', '__pycache__')


@dataclasses.dataclass(frozen=True)
class Stdlib(Source):
    """The sources of the Python that runs, built as a TensorFlow Datasets data set on first use."""

    kind: ClassVar[str] = 'stdlib'

    def identity(self) -> dict[str, Any]:
        """Python and builder versions, and a digest of names and contents (distributions drop parts
        of the library, such as its tests). FileNotFoundError where the interpreter comes without
        its sources."""
        root = folder()
        names = files(root)
        if not names:
            raise FileNotFoundError(
                f'{self.name()}: kind stdlib: no *.py file under {root}; name another source'
            )
        python = platform.python_version()
        return folders.identity(self.kind, root, names, python=python, builder=BUILDER_VERSION)

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> Sequence[Part]:
        from nope.data.sources import stdlib_builder  # takes a moment to import

        built = Tfds(str(stdlib_builder.build(self.identity(), cache)), names=self.names)
        return built.list_parts(cache, part_bytes)

    def describe(self) -> str:
        return 'Python standard library sources'


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
        below = pathlib.Path(parent).relative_to(root)
        for name in names:
            kept = name.endswith('.py') and not name.startswith('_sysconfigdata')
            if kept and os.path.isfile(os.path.join(parent, name)):
                found.append((below / name).as_posix())
    return sorted(found)


def split_of_file(relative_path: str) -> str:
    """The split of a file, by a hash of its relative path alone: a file that two Python
    versions share falls into the same split in both."""
    return split_of(relative_path.encode())


def _is_skipped(name: str) -> bool:
    return name in _SKIPPED_FOLDERS or name.startswith('config-')
