"""Data sets in TensorFlow Datasets form: its catalogue, and our own standard-library builder.

Only what is already prepared on this machine is read: nothing is downloaded and no data set's
own code is imported. TensorFlow is not needed.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

from nope.data import config, digest


@dataclasses.dataclass(frozen=True)
class CataloguePart:
    """The examples [begin, end) of a split of the data set prepared in `folder`."""

    folder: str
    split: str
    begin: int
    end: int
    size: int
    field: str

    def documents(self) -> Iterator[tuple[str, bytes]]:
        examples = _builder(self.folder).as_data_source(self.split)
        for i in range(self.begin, self.end):
            text = examples[i][self.field]
            yield self.split, text.encode('utf-8', 'replace') if isinstance(text, str) else text


def find(name: str, dataset: str) -> pathlib.Path:
    """The folder of the prepared data set `dataset`: a folder, or a name like `pg19` or
    `lm1b/subwords8k:1.0.0` that is looked up in the local TFDS folder.

    Raises FileNotFoundError naming `<name>.path` where it is not prepared here.
    """
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import read_only_builder

    if (pathlib.Path(dataset) / 'dataset_info.json').is_file():
        return pathlib.Path(dataset)
    try:
        found, options = tfds.core.naming.parse_builder_name_kwargs(dataset)
        return pathlib.Path(read_only_builder.builder_from_files(str(found), **options).data_dir)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise FileNotFoundError(
            f'{name}.path={dataset!r}: TensorFlow Datasets has not prepared it on this machine. '
            f'Run `tfds build {dataset} --file_format=array_record` where there is a network, '
            'set TFDS_DATA_DIR if it lies in another folder than ~/tensorflow_datasets, or give '
            'the folder of the version itself (the one that holds dataset_info.json)'
        ) from error


def list_parts(name: str, folder: pathlib.Path, field: str, part_bytes: int) -> list[CataloguePart]:
    """The data set's own splits (those of `config.SPLITS`), in parts of about `part_bytes`.

    Raises ValueError for a format without random access and for a field it does not have.
    """
    builder = _builder(str(folder))
    features = builder.info.features
    if field not in features:
        raise ValueError(f'{name}.field={field!r}: {builder.name} has {sorted(features)}')
    parts = []
    for split in config.SPLITS:
        if split not in builder.info.splits:
            continue
        info = builder.info.splits[split]
        _check_random_access(name, builder, split)
        mean_bytes = max(1, info.num_bytes // max(1, info.num_examples))
        step = max(1, part_bytes // mean_bytes)
        for begin in range(0, info.num_examples, step):
            end = min(begin + step, info.num_examples)
            size = (end - begin) * mean_bytes
            parts.append(CataloguePart(str(folder), split, begin, end, size, field))
    return parts


def identity(folder: pathlib.Path, field: str) -> dict[str, Any]:
    """Content identity: name, version and the shards of each split as TFDS recorded them."""
    info = _builder(str(folder)).info
    shards = {
        split: [info.splits[split].num_bytes, list(info.splits[split].shard_lengths)]
        for split in config.SPLITS
        if split in info.splits
    }
    return {
        'kind': 'tfds',
        'name': info.full_name,
        'field': field,
        'digest': digest.of_json(shards),
    }


def _builder(folder: str) -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder)


def _check_random_access(name: str, builder: Any, split: str) -> None:
    try:
        builder.as_data_source(split)
    except (NotImplementedError, ValueError) as error:
        raise ValueError(
            f'{name}.path: {builder.name} is stored as {builder.info.file_format}, which has no '
            f'random access; prepare it again with --file_format=array_record ({error})'
        ) from error
