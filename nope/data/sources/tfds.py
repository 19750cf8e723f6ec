"""Data sets that TensorFlow Datasets has prepared: one example, one document.

Only data that are prepared on this machine are read. Nothing is downloaded and no data set's own
code is imported: TFDS imports each feature's class that features.json names, so a name outside TFDS
is refused before. TensorFlow is not needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar

from nope.data import digest
from nope.data.sources.base import PART_BYTES, Source
from nope.data.splits import SPLITS
from nope.runtime.errors import brief
from nope.runtime.files import parse_json

FEATURES = 'features.json'
CLASS_KEYS = ('pythonClassName', 'python_class_name')  # what the protocol buffer's JSON accepts
OWN_CLASSES = 'tensorflow_datasets.'


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
        info = _builder(self, str(self._find())).info
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
        builder = _builder(self, folder)
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
            _opened(self, folder, split)
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
        from tensorflow_datasets.core.utils import error_utils

        if (pathlib.Path(self.path) / 'dataset_info.json').is_file():
            return pathlib.Path(self.path)
        try:
            found, options = tfds.core.naming.parse_builder_name_kwargs(self.path)
            with error_utils.reraise_with_context(tfds.core.DatasetNotFoundError):
                folder = read_only_builder._find_builder_dir(str(found), **options)
            if folder is None:
                raise ValueError('no folder of it was found')
            return pathlib.Path(folder)
        except (tfds.core.DatasetNotFoundError, ValueError) as error:
            raise FileNotFoundError(
                f'{self.name()}: TensorFlow Datasets has not prepared {self.path!r} on this '
                f'machine. Run `tfds build {self.path} --file_format=array_record` where there is '
                'a network, set TFDS_DATA_DIR if it lies in another folder than '
                '~/tensorflow_datasets, or give the folder of the version itself (the one that '
                'holds dataset_info.json)'
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
        examples = _opened(self.source, self.folder, self.split)
        for i in range(self.begin, self.end):
            try:
                text = examples[i][self.source.field]
            except Exception as error:  # whatever the damage makes the library raise
                raise ValueError(
                    f'{self.source.name()}: {self.folder} is damaged: example {i} of the split '
                    f'{self.split} cannot be read: {brief(error)}'
                ) from error
            if not isinstance(text, str | bytes):
                raise ValueError(
                    f'{self.source.name("field")}={self.source.field!r}: example {i} of the split '
                    f'{self.split} in {self.folder} holds {type(text).__name__}, not a text'
                )
            yield self.split, text.encode('utf-8', 'replace') if isinstance(text, str) else text


def _builder(source: Tfds, folder: str) -> Any:
    """The data set of a folder; ValueError where its description cannot be read or names a class
    outside TFDS."""
    import tensorflow_datasets as tfds

    path = pathlib.Path(folder) / FEATURES
    try:
        foreign = [
            name
            for name in (_classes(path.read_text()) if path.exists() else ())
            if not isinstance(name, str) or not name.startswith(OWN_CLASSES)
        ]
    except (OSError, ValueError) as error:
        raise ValueError(
            f'{source.name()}: {folder} is no data set that can be read: {brief(error)}'
        ) from error
    if foreign:
        raise ValueError(
            f'{source.name()}: {path} names the class {foreign[0]!r:.200}, whose module would be '
            f'imported; accepted are classes of {OWN_CLASSES.rstrip(".")}'
        )
    try:
        builder = tfds.builder_from_directory(folder)
        builder.info.splits, builder.info.features  # noqa: B018 (read when they are asked for)
    except Exception as error:  # whatever the damage makes the library raise
        raise ValueError(
            f'{source.name()}: {folder} is no data set that can be read: {brief(error)}'
        ) from error
    return builder


def _classes(text: str) -> Iterator[object]:
    """Names of the classes in a JSON text, also in texts inside of it. Early versions of TFDS wrote
    `type` and `content`, and nested objects as texts."""
    waiting = [parse_json(text)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from (value[key] for key in CLASS_KEYS if key in value)
            if 'content' in value and 'type' in value:
                yield value['type']
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and value.lstrip()[:1] in ('{', '['):
            with contextlib.suppress(ValueError):  # a text that only begins so
                waiting.append(parse_json(value))


def _opened(source: Tfds, folder: str, split: str) -> Any:
    """The examples of a split, with random access."""
    builder = _builder(source, folder)
    try:
        return builder.as_data_source(split)
    except Exception as error:  # as above, and what says that the format has no random access
        raise ValueError(
            f'{source.name()}: {builder.name} in {folder} is stored as '
            f'{builder.info.file_format}, which has no random access, or is damaged; prepare it '
            f'again with --file_format=array_record ({brief(error)})'
        ) from error
