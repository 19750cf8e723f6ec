"""TensorFlow Datasets builder of the Python standard library's sources.

Importing this module imports tensorflow_datasets (not TensorFlow), which takes a moment:
import it where it is needed.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
from collections.abc import Iterator
from typing import Any

import tensorflow_datasets as tfds

from nope.data import digest
from nope.data.sources import stdlib
from nope.data.splits import SPLITS
from nope.runtime import files


class StdlibSources(tfds.core.GeneratorBasedBuilder):
    """One example per `*.py` file: `path` relative to the library, `text` as raw bytes."""

    VERSION = tfds.core.Version(stdlib.BUILDER_VERSION)
    RELEASE_NOTES = {stdlib.BUILDER_VERSION: 'First version.'}  # noqa: RUF012

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
        root = stdlib.folder()
        for name in stdlib.files(root):
            if stdlib.split_of_file(name) == split:
                yield name, {'path': name, 'text': (root / name).read_bytes()}


def build(identity: dict[str, Any], cache: pathlib.Path) -> pathlib.Path:
    """The folder of the built data set under `cache`, built there on first use.

    The folder's name is a digest of `identity`, that of `stdlib.Stdlib`, so that another Python
    builds another one.
    Processes that ask at the same time build it once; one that is killed leaves nothing that
    looks finished.
    """
    root = cache / 'tfds' / f'stdlib-{digest.of_json(identity)}'
    built = root / 'stdlib_sources' / stdlib.BUILDER_VERSION
    if built.is_dir():
        return built
    with files.exclusive(root.with_name(f'.{root.name}.lock')):
        if not built.is_dir():
            with files.unfinished_folder(root) as partial:
                builder = StdlibSources(data_dir=partial, file_format='array_record')
                with files.writing(partial, RuntimeError), _quiet():
                    builder.download_and_prepare()
                files.move_into_place(partial, root)
    return built


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides TFDS' progress bars and its announcement of a download: there is none."""
    tfds.disable_progress_bar()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        tfds.enable_progress_bar()
