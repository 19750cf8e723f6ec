"""Parquet files and folders of TensorFlow Datasets."""

from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow_datasets as tfds

from nope.data.sources import Parquet, Tfds
from tests.fuzz.case import Case, Target, attempt, expect, fresh
from tests.fuzz.mutation import Draw, choice, json_bytes, mutated, one_in
from tests.fuzz.targets.lines import documents

ROWS = [f'row {i}: ' + 'some words and more ' * (i % 7 + 1) for i in range(60)]
COUNTS = {'train': 30, 'validation': 5}  # examples of each split


def parquet_files(folder: pathlib.Path) -> dict[str, bytes]:
    """The rows as writers leave them: packed in several ways, all pages with checksums."""
    table = pa.table({'text': ROWS, 'id': list(range(len(ROWS)))})
    kinds: dict[str, dict[str, Any]] = {
        'plain': {'compression': 'none', 'use_dictionary': False},
        'snappy': {'compression': 'snappy'},
        'zstd': {'compression': 'zstd', 'data_page_version': '2.0'},
        'gzip': {'compression': 'gzip', 'data_page_size': 200},
    }
    found = {}
    for name, options in kinds.items():
        path = folder / f'{name}.parquet'
        pq.write_table(table, path, row_group_size=16, write_page_checksum=True, **options)
        found[name] = path.read_bytes()
    return found


def _parquet(folder: pathlib.Path) -> Case:
    files = parquet_files(folder)
    wanted = [row.encode() for row in ROWS]
    paths = fresh(folder)

    def case(draw: Draw) -> bool:
        name = choice(draw, sorted(files))
        sound = one_in(draw, 16)
        data = files[name] if sound else mutated(draw, files[name], list(files.values()))
        path = next(paths).with_suffix('.parquet')
        path.write_bytes(data)
        source = Parquet(str(path))
        try:
            accepted, found = attempt(lambda: documents(source, folder, 1000), path, "'text'")
            expect(accepted or not sound, f'a sound file is refused: {found}')
            # Where a changed footer says the same of fewer rows, so does another reader.
            if accepted and found != wanted:
                expect(len(found) == _rows(path), 'other rows than the file holds')
        finally:
            path.unlink()
        return accepted

    return case


def _rows(path: pathlib.Path) -> int | None:
    with contextlib.suppress(Exception):
        return pq.read_table(path, columns=['text']).num_rows
    return None


class FuzzedBooks(tfds.core.GeneratorBasedBuilder):
    """A data set of two splits."""

    VERSION = tfds.core.Version('1.2.3')

    def _info(self) -> Any:
        features = tfds.features.FeaturesDict({'text': tfds.features.Text()})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
        return {split: self._generate_examples(count) for split, count in COUNTS.items()}

    def _generate_examples(self, count: int) -> Iterator[Any]:
        for i in range(count):
            yield i, {'text': ROWS[i]}


def _tfds(folder: pathlib.Path) -> Case:
    FuzzedBooks(data_dir=folder / 'made', file_format='array_record').download_and_prepare()
    (home,) = (folder / 'made').glob('*/1.2.3')
    files = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    homes = fresh(folder)

    def case(draw: Draw) -> bool:
        name = choice(draw, sorted(files))
        sound = one_in(draw, 16)
        data = files[name]
        if not sound:
            is_json = name.endswith('.json') and not one_in(draw, 3)
            data = json_bytes(draw, json.loads(data)) if is_json else mutated(draw, data, [data])
        path = next(homes) / '1.2.3'
        shutil.copytree(home, path)
        (path / name).write_bytes(data)
        source = Tfds(str(path))
        try:
            accepted, found = attempt(lambda: _read(source, folder), path, path.parent.name)
        finally:
            shutil.rmtree(path.parent)
        expect(accepted or not sound, f'a sound folder is refused: {found}')
        if accepted:
            info = data if name == 'dataset_info.json' else files['dataset_info.json']
            splits = {split['name'] for split in json.loads(info)['splits']}
            counts = [count for split, count in COUNTS.items() if split in splits]
            wanted = [row.encode() for count in counts for row in ROWS[:count]]
            expect(sorted(found) == sorted(wanted), f'{len(found)} other examples')
        return accepted

    return case


def _read(source: Tfds, folder: pathlib.Path) -> list[bytes]:
    source.identity()
    return documents(source, folder, 1000)


TARGETS: tuple[Target, ...] = (
    Target('tables.parquet', 25, _parquet),
    Target('tables.tfds', 8, _tfds),
)
