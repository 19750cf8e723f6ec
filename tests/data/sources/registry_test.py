"""What a config can say of a source, and what it takes to add a kind."""

from __future__ import annotations

import dataclasses
import pathlib
import pickle
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from nope.data import SPLITS, describe, from_section, identity, sources, training_batches
from nope.data.sources import KINDS, JsonLines, Retrieval, Source, Stdlib, Text, Tfds

NAMES = {'source': 'data.mixture[1]', 'field': 'data.field'}


@dataclasses.dataclass(frozen=True)
class Numbers(Source):
    """The numbers from 1 to `path`, `record_length` digits each: one document, in every split."""

    kind: ClassVar[str] = 'numbers'
    path: str
    record_length: int = 3

    def identity(self) -> dict[str, Any]:
        return {'kind': self.kind, 'last': self.path, 'digits': self.record_length}

    def list_parts(
        self, cache: pathlib.Path, part_bytes: int = sources.PART_BYTES
    ) -> list[NumbersPart]:
        return [NumbersPart(self)]

    def describe(self) -> str:
        return f'numbers up to {self.path}'


@dataclasses.dataclass(frozen=True)
class NumbersPart:
    source: Numbers
    size: int = 0

    def documents(self) -> Iterator[tuple[str, bytes]]:
        numbers = range(1, int(self.source.path) + 1)
        text = ''.join(f'{i:0{self.source.record_length}d}' for i in numbers)
        for split in SPLITS:
            yield split, text.encode()


def test_a_kind_takes_one_class_and_one_line_to_train_from(monkeypatch, tmp_path):
    monkeypatch.setitem(KINDS, Numbers.kind, Numbers)
    data = from_section({'source': 'numbers:2000', 'record_length': 4})
    for split, text in Numbers('2000', 4).list_parts(tmp_path)[0].documents():
        (tmp_path / 'text' / split).mkdir(parents=True)
        (tmp_path / 'text' / split / 'numbers').write_bytes(text)
    same = from_section({'source': f'text:{tmp_path / "text"}'})
    options = {'length': 15, 'batch_size': 8, 'seed': 0, 'start': 3, 'cache': tmp_path}
    batch, expected = (next(training_batches(config, **options)) for config in (data, same))
    for array, wanted in zip(batch[:2], expected[:2], strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert describe(data) == 'numbers up to 2000, bytes'
    content = {'kind': 'numbers', 'last': '2000', 'digits': 4, 'weight': 1.0}
    assert identity(data)['sources'] == [content]


@dataclasses.dataclass(frozen=True)
class Digits(Numbers):
    kind: ClassVar[str] = 'digits'
    base: int = dataclasses.field(kw_only=True)


def test_a_field_that_a_kind_needs_is_named(monkeypatch):
    monkeypatch.setitem(KINDS, Digits.kind, Digits)
    with pytest.raises(ValueError, match=r'data\.source: the kind digits needs the field base'):
        from_section({'source': 'digits:2000'})


def test_every_kind_is_registered_under_its_own_name():
    assert {name: kind.kind for name, kind in KINDS.items()} == {name: name for name in KINDS}


@pytest.mark.parametrize(
    ('short', 'expected'),
    [
        ('stdlib', Stdlib()),
        ('text:a:b', Text('a:b')),
        ('jsonl:rows', JsonLines('rows', 'body')),
        ('tfds:lm1b/subwords8k:1.0.0', Tfds('lm1b/subwords8k:1.0.0', 'body')),
        ('retrieval', Retrieval(96)),
    ],
)
def test_the_short_form_and_the_section_make_a_source(short, expected):
    section = {'field': 'body', 'record_length': 96}
    assert sources.parse(short, section, None, NAMES) == expected


@pytest.mark.parametrize(
    ('short', 'section', 'message'),
    [
        ('csv:a', {}, r"data\.mixture\[1\] is 'csv:a'; accepted: stdlib, tfds:PATH, text:PATH"),
        ('', {}, r"data\.mixture\[1\] is ''; accepted: stdlib"),
        ('stdlib:here', {}, r"data\.mixture\[1\]: the kind stdlib takes no path, 'here'"),
        ('text', {}, r'data\.mixture\[1\]: the kind text needs a file or folder'),
        ('tfds:', {}, r'data\.mixture\[1\]: the kind tfds needs a data set'),
        ('shards', {}, r'data\.mixture\[1\]: the kind shards needs a folder'),
        ('jsonl:a', {'field': ''}, r'data\.field: the kind jsonl needs the field'),
        ('parquet:a', {'field': ''}, r'data\.field: the kind parquet needs the column'),
        ('tfds:a', {'field': ''}, r'data\.field: the kind tfds needs the feature'),
    ],
)
def test_what_does_not_fit_is_refused_by_what_was_typed(short, section, message):
    with pytest.raises(ValueError, match=message):
        sources.parse(short, section, None, NAMES)


def test_what_a_source_was_typed_as_is_no_part_of_it():
    """Two runs whose configs name the same source in other places are the same run."""
    named = Text('a', names=NAMES)
    assert named == Text('a') and hash(named) == hash(Text('a'))


def test_parts_travel_to_other_processes(tmp_path):
    (tmp_path / 'rows.jsonl').write_text('{"text": "a"}\n')
    source = JsonLines(str(tmp_path / 'rows.jsonl'), names=NAMES)
    parts = source.list_parts(tmp_path)
    assert pickle.loads(pickle.dumps(parts)) == parts
