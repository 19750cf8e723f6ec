"""The kind `shards`; what is in a shard: tests/data/shards_test.py."""

from __future__ import annotations

import json

import pytest

from nope.data import prepare
from nope.data.sources import Shards, Text


@pytest.fixture
def folder(corpus, tmp_path):
    prepare.prepare(Text(str(corpus)), 'bytes', tmp_path / 'shards', cache=tmp_path)
    return tmp_path / 'shards'


def test_identity_is_that_of_the_metadata_but_for_the_name_of_the_corpus(folder):
    before = Shards(str(folder)).identity()
    metadata = json.loads((folder / 'metadata.json').read_text())
    (folder / 'metadata.json').write_text(json.dumps(metadata | {'description': 'renamed'}))
    assert Shards(str(folder)).identity() == before
    (folder / 'metadata.json').write_text(json.dumps(metadata | {'tokenizer': 'other'}))
    assert Shards(str(folder)).identity() != before


def test_they_are_prepared_already(folder, tmp_path):
    source = Shards(str(folder))
    assert source.prepared() == folder
    with pytest.raises(ValueError, match=r'data\.source: .* prepared already'):
        prepare.prepare(source, 'bytes', tmp_path / 'out', cache=tmp_path)


def test_another_folder_is_refused_by_field(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'data\.source: no metadata\.json in'):
        Shards(str(tmp_path)).identity()
