from __future__ import annotations

import csv
import dataclasses
import errno
import json
import os
import pathlib
import re

import numpy as np
import pytest

from nope import records
from nope.records import Measure, Records


def example() -> Records:
    draw = np.random.default_rng(0)
    return Records(
        attributes={'evaluation': 'positions', 'length': 3, 'fit_a': None, 'seed': 1},
        measures={
            'loss': Measure(draw.normal(size=3), ('position',), 'nats'),
            'multiplier': Measure(
                draw.normal(size=(2, 3)).astype(np.float32), ('layer', 'position'), '1'
            ),
            'entropy': Measure(draw.normal(size=(2, 4, 3)), ('layer', 'head', 'position'), 'nats'),
        },
        coordinates={'position': np.array([1, 2, 3])},
    )


def test_records_come_back_bit_for_bit(tmp_path: pathlib.Path) -> None:
    saved = example()
    records.save(saved, tmp_path / 'new')
    found = records.load(tmp_path / 'new')
    assert found.attributes == saved.attributes
    assert found.measures.keys() == saved.measures.keys()
    for name, measure in saved.measures.items():
        np.testing.assert_array_equal(found[name], measure.values, strict=True)
        assert (found.measures[name].axes, found.measures[name].unit) == (
            measure.axes,
            measure.unit,
        )
    np.testing.assert_array_equal(found.coordinates['position'], [1, 2, 3], strict=True)


def test_tables_hold_the_exact_values_with_their_coordinates(tmp_path: pathlib.Path) -> None:
    saved = example()
    records.save(saved, tmp_path)
    assert sorted(p.name for p in tmp_path.glob('*.csv')) == ['loss.csv', 'multiplier.csv']
    with (tmp_path / 'multiplier.csv').open(newline='') as file:
        header, *rows = csv.reader(file)
    assert header == ['layer', 'position', 'multiplier (1)']
    assert [row[:2] for row in rows] == [[str(i), str(p)] for i in (0, 1) for p in (1, 2, 3)]
    np.testing.assert_array_equal(np.float32([r[2] for r in rows]), saved['multiplier'].ravel())


def test_an_unfinished_evaluation_cannot_be_loaded(tmp_path: pathlib.Path) -> None:
    records.save(example(), tmp_path)
    (tmp_path / 'records.json').unlink()
    with pytest.raises(FileNotFoundError):
        records.load(tmp_path)


@pytest.mark.parametrize('name', ['records.npz', 'loss.csv'])
def test_a_failed_write_leaves_the_earlier_file_whole(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    records.save(example(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    sync, open_files = os.fsync, iter(('records.npz', 'loss.csv'))

    def full(descriptor: int) -> None:
        if next(open_files) == name:
            raise OSError(errno.ENOSPC, 'No space left on device')
        sync(descriptor)

    monkeypatch.setattr(os, 'fsync', full)
    loss = Measure(np.zeros(3), ('position',), 'nats')
    with pytest.raises(OSError, match='No space left'):
        records.save(dataclasses.replace(example(), measures={'loss': loss}), tmp_path)
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert found.keys() == before.keys()
    assert found[name] == before[name]


def test_records_of_another_format_are_refused_with_what_to_do(tmp_path: pathlib.Path) -> None:
    records.save(example(), tmp_path)
    described = json.loads((tmp_path / 'records.json').read_text())
    del described['format']
    (tmp_path / 'records.json').write_text(json.dumps(described))
    file, folder = re.escape(str(tmp_path / 'records.json')), re.escape(str(tmp_path))
    message = (
        rf'{file} is of format 1; accepted is 2\. .* measures it again, .*; then remove {folder}$'
    )
    with pytest.raises(ValueError, match=message):
        records.load(tmp_path)


def test_a_missing_measure_is_named() -> None:
    with pytest.raises(
        KeyError, match=r"no measure 'perplexity'; .*'entropy', 'loss', 'multiplier'"
    ):
        example()['perplexity']


def test_an_axis_without_coordinates_is_counted() -> None:
    assert example().along('head', 4).tolist() == [0, 1, 2, 3]
    assert example().along('position', 3).tolist() == [1, 2, 3]


def test_every_dimension_has_a_name() -> None:
    with pytest.raises(ValueError, match='2 dimensions'):
        Measure(np.zeros((2, 3)), ('position',), 'nats')


def refusal(folder: pathlib.Path) -> str | None:
    """The message with which records are refused, or None where they are those of `example`."""
    try:
        found = records.load(folder)
    except ValueError as error:
        return str(error)
    assert found.attributes == example().attributes
    for name, measure in example().measures.items():
        np.testing.assert_array_equal(found[name], measure.values, strict=True)
    return None


def test_arrays_with_a_changed_byte_are_refused_by_name(tmp_path: pathlib.Path) -> None:
    records.save(example(), tmp_path)
    path = tmp_path / 'records.npz'
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert (refusal(tmp_path) or '').startswith(f'{path} is damaged: ')


def test_arrays_of_other_records_of_the_same_shape_are_refused(tmp_path: pathlib.Path) -> None:
    other = dataclasses.replace(
        example(),
        measures={
            name: dataclasses.replace(measure, values=measure.values + 1)
            for name, measure in example().measures.items()
        },
    )
    for name, saved in (('a', example()), ('b', other)):
        records.save(saved, tmp_path / name)
    (tmp_path / 'b' / 'records.npz').replace(tmp_path / 'a' / 'records.npz')
    folder = re.escape(str(tmp_path / 'a'))
    message = rf'^{folder}/records\.npz is damaged: .*checksum.*; remove {folder}, .*again'
    with pytest.raises(ValueError, match=message):
        records.load(tmp_path / 'a')


def test_a_changed_attribute_or_measure_is_refused(tmp_path: pathlib.Path) -> None:
    records.save(example(), tmp_path)
    path = tmp_path / 'records.json'
    text = path.read_text()
    for old, new in (('"length": 3', '"length": 4'), ('"nats"', '"bits"'), ('"loss"', '"lost"')):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(ValueError, match=r'records\.json is damaged: it is not what was writ'):
            records.load(tmp_path)
    path.write_text(text.replace('\n', ' '))
    assert refusal(tmp_path) is None


def test_the_entropy_is_that_of_the_frequencies():
    tokens = np.array([[7, 7, 7], [7, 9, 300]])
    expected = -(4 / 6 * np.log(4 / 6) + 2 / 6 * np.log(1 / 6))
    assert records.unigram_entropy(tokens) == pytest.approx(expected)
    assert records.unigram_entropy(np.full(5, 3)) == 0


def test_no_model_of_frequencies_is_below_it():
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 5, 100)
    for _ in range(20):
        p = rng.dirichlet(np.ones(5))
        assert -np.log(p[tokens]).mean() >= records.unigram_entropy(tokens)
