"""The Python standard library's own source files: real text that every machine has."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
import pathlib
import platform
import sysconfig
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from nope.data import digest
from nope.data.sources import folders
from nope.data.sources.base import PART_BYTES, CorpusPart, Source
from nope.data.sources.tfds import Tfds
from nope.data.splits import SPLITS, split_of
from nope.runtime import files

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
        names = names_in(root)
        if not names:
            raise FileNotFoundError(
                f'{self.name()}: kind stdlib: no *.py file under {root}; name another source'
            )
        python = platform.python_version()
        return folders.identity(self.kind, root, names, python=python, builder=BUILDER_VERSION)

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> Sequence[CorpusPart]:
        built = Tfds(str(build(self.identity(), cache)), names=self.names)
        return built.list_parts(cache, part_bytes)

    def describe(self) -> str:
        return 'Python standard library sources'


def folder() -> pathlib.Path:
    """The standard library's folder, the base interpreter's where this is a virtual one."""
    return pathlib.Path(sysconfig.get_path('stdlib'))


def names_in(root: pathlib.Path) -> list[str]:
    """Relative POSIX paths of the library's `*.py` files, sorted.

    Installed packages are left out, and so is what the build generates (`_sysconfigdata*`,
    `config-*/`), which differs between two machines with the same Python.
    """
    found = []
    for parent, children, names in os.walk(root):
        children[:] = [
            c for c in children if c not in _SKIPPED_FOLDERS and not c.startswith('config-')
        ]
        below = pathlib.Path(parent).relative_to(root)
        for name in names:
            kept = name.endswith('.py') and not name.startswith('_sysconfigdata')
            if kept and os.path.isfile(os.path.join(parent, name)):
                found.append((below / name).as_posix())
    return sorted(found)


def build(identity: dict[str, Any], cache: pathlib.Path) -> pathlib.Path:
    """The folder of the built data set under `cache`, built there on first use.

    A digest of `identity`, that of `Stdlib`, names the folder, so that another Python builds
    another one. Processes that ask at the same time build it once. A killed one leaves nothing that
    looks finished.
    """
    root = cache / 'tfds' / f'stdlib-{digest.of_json(identity)}'
    built = root / 'stdlib_sources' / BUILDER_VERSION
    if built.is_dir():
        return built
    with files.exclusive(root.with_name(f'.{root.name}.lock')):
        if not built.is_dir():
            with files.unfinished_folder(root) as partial:
                builder = _builder()(data_dir=partial, file_format='array_record')
                with files.writing(partial, RuntimeError), _quiet():
                    builder.download_and_prepare()
                files.move_into_place(partial, root)
    return built


@functools.cache  # TensorFlow Datasets registers a class by its name
def _builder() -> Any:
    """The builder class: one example per `*.py` file, `path` and `text` as raw bytes."""
    import tensorflow_datasets as tfds  # takes a moment to import

    class StdlibSources(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version(BUILDER_VERSION)
        RELEASE_NOTES = {BUILDER_VERSION: 'First version.'}  # noqa: RUF012

        def _info(self) -> tfds.core.DatasetInfo:
            return tfds.core.DatasetInfo(
                builder=self,
                description='Sources of the Python standard library, split by file.',
                features=tfds.features.FeaturesDict(
                    {'path': tfds.features.Text(), 'text': tfds.features.Text()}
                ),
            )

        def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
            del dl_manager  # nothing is downloaded
            return {split: self._generate_examples(split) for split in SPLITS}

        def _generate_examples(self, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
            root = folder()
            for name in names_in(root):
                if split_of(name.encode()) == split:  # the same in every version of Python
                    yield name, {'path': name, 'text': (root / name).read_bytes()}

    return StdlibSources


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides TFDS' progress bars and its announcement of a download: there is none."""
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        tfds.enable_progress_bar()
