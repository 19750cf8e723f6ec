"""Data sets that TensorFlow Datasets has prepared: one example, one document.

Only what is already prepared on this machine is read: nothing is downloaded and no data set's
own code is imported. TensorFlow is not needed.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar

from nope.data import digest
from nope.data.sources.base import PART_BYTES, Source
from nope.data.splits import SPLITS


@dataclasses.dataclass(frozen=True)
class Tfds(Source):
    """A data set's name, like `pg19` or `lm1b/subwords8k:1.0.0`, which is looked up in the local
    TFDS folder, or the folder of its version itself; the feature `field` holds the text."""

    kind: ClassVar[str] = 'tfds'
    path: str
    field: str = 'text'

    def __post_init__(self) -> None:
        self.need('source', self.path, 'a data set or its folder, as in tfds:pg19')
        self.need('field', self.field, 'the feature that holds the text')

    def identity(self) -> dict[str, Any]:
        """Name, version and the shards of each split as TFDS recorded them."""
        info = _builder(str(self._find())).info
        shards = {
            split: [info.splits[split].num_bytes, list(info.splits[split].shard_lengths)]
            for split in SPLITS
            if split in info.splits
        }
        return {
            'kind': self.kind,
            'name': info.full_name,
            'field': self.field,
            'digest': digest.of_json(shards),
        }

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> list[TfdsPart]:
        """Parts of the data set's own splits. Raises ValueError too for a format without random
        access and for a field it does not have."""
        folder = str(self._find())
        builder = _builder(folder)
        features = builder.info.features
        if self.field not in features:
            raise ValueError(
                f'{self.name("field")}={self.field!r}: {builder.name} has {sorted(features)}'
            )
        parts = []
        for split in SPLITS:
            if split not in builder.info.splits:
                continue
            info = builder.info.splits[split]
            self._check_random_access(builder, split)
            mean_bytes = max(1, info.num_bytes // max(1, info.num_examples))
            step = max(1, part_bytes // mean_bytes)
            for begin in range(0, info.num_examples, step):
                end = min(begin + step, info.num_examples)
                size = (end - begin) * mean_bytes
                parts.append(TfdsPart(self, folder, split, begin, end, size))
        return parts

    def describe(self) -> str:
        parts = pathlib.PurePath(self.path).parts
        return f'{"/".join(parts[-2:])} (TFDS)' if parts[0] == '/' else self.path

    def _find(self) -> pathlib.Path:
        """The data set's folder; FileNotFoundError where it is not prepared here."""
        import tensorflow_datasets as tfds
        from tensorflow_datasets.core import read_only_builder

        if (pathlib.Path(self.path) / 'dataset_info.json').is_file():
            return pathlib.Path(self.path)
        try:
            found, options = tfds.core.naming.parse_builder_name_kwargs(self.path)
            builder = read_only_builder.builder_from_files(str(found), **options)
            return pathlib.Path(builder.data_dir)
        except (tfds.core.DatasetNotFoundError, ValueError) as error:
            raise FileNotFoundError(
                f'{self.name()}: TensorFlow Datasets has not prepared {self.path!r} on this '
                f'machine. Run `tfds build {self.path} --file_format=array_record` where there is '
                'a network, set TFDS_DATA_DIR if it lies in another folder than '
                '~/tensorflow_datasets, or give the folder of the version itself (the one that '
                'holds dataset_info.json)'
            ) from error

    def _check_random_access(self, builder: Any, split: str) -> None:
        try:
            builder.as_data_source(split)
        except (NotImplementedError, ValueError) as error:
            raise ValueError(
                f'{self.name()}: {builder.name} is stored as {builder.info.file_format}, which has '
                f'no random access; prepare it again with --file_format=array_record ({error})'
            ) from error


@dataclasses.dataclass(frozen=True)
class TfdsPart:
    """The examples [begin, end) of a split of the data set prepared in `folder`."""

    source: Tfds
    folder: str
    split: str
    begin: int
    end: int
    size: int

    def documents(self) -> Iterator[tuple[str, bytes]]:
        examples = _builder(self.folder).as_data_source(self.split)
        for i in range(self.begin, self.end):
            try:
                text = examples[i][self.source.field]
            except (EOFError, IndexError, OSError, RuntimeError, ValueError) as error:
                raise ValueError(
                    f'{self.source.name()}: {self.folder} is damaged: example {i} of the split '
                    f'{self.split} cannot be read: {error}'
                ) from error
            yield self.split, text.encode('utf-8', 'replace') if isinstance(text, str) else text


def _builder(folder: str) -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder)
