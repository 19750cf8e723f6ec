"""Whole documents come as they are, in order, and windows are cut out of them."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nope.data import DataConfig, prepare, shards, stores
from nope.data.documents import Documents, open_documents
from nope.data.sources import KINDS, JsonLines, Shards, Source, Text
from tests.data.documents import whole

BOS, EOS = 257, 256
DRAW = np.random.default_rng(0)
# Not sorted in any way, and 'first' twice: order and copies are the data set's.
TEXTS = [
    'first',
    'zeta eta theta',
    'a',
    *(DRAW.integers(32, 127, n).astype(np.uint8).tobytes().decode() for n in (400, 3, 90)),
    'first',
]


def write(kind: str, folder: pathlib.Path) -> Source:
    """TEXTS as the test split of a source, beside a train split."""
    if kind == 'text':
        for i, text in enumerate(TEXTS):
            path = folder / 'test' / f'{i}.txt'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (folder / 'train').mkdir()
        (folder / 'train' / 'a.txt').write_text('training')
    elif kind == 'jsonl':
        folder.mkdir()
        for split, texts in (('train', ['training']), ('test', TEXTS)):
            lines = [json.dumps({'text': text}) for text in texts]
            (folder / f'{split}.jsonl').write_text('\n'.join(lines))
    elif kind == 'parquet':
        folder.mkdir()
        for split, texts in (('train', ['training']), ('test', TEXTS)):
            pq.write_table(pa.table({'text': texts}), folder / f'{split}.parquet')
    else:  # a part and a shard for every document or two
        source = write('text', folder / 'raw')
        out = folder / 'shards'
        prepare.prepare(source, 'bytes', out, cache=folder, part_bytes=8)
        return Shards(str(out))
    return KINDS[kind](str(folder))


@pytest.fixture(scope='module')
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return write('text', tmp_path_factory.mktemp('documents') / 'books')


def opened(source: Source, cache: pathlib.Path, **options) -> Documents:
    return open_documents(
        DataConfig((source,)), cache=cache, **({'split': 'test', 'bos': True} | options)
    )


@pytest.mark.parametrize('kind', ['text', 'jsonl', 'parquet', 'shards'])
def test_documents_are_the_texts_in_the_order_of_the_data_set(kind, tmp_path, cache):
    found = opened(write(kind, tmp_path / kind), cache)
    texts = whole(found)
    assert [tokens.tolist() for tokens in texts] == [[BOS, *text.encode()] for text in TEXTS]
    assert all(tokens.dtype == np.int32 for tokens in texts)
    assert found.lengths.tolist() == [len(text) + 1 for text in TEXTS]


def test_without_a_begin_mark_they_are_the_text_alone(source, cache):
    found = opened(source, cache, bos=False)
    assert [bytes(tokens.tolist()).decode() for tokens in whole(found)] == TEXTS
    assert found.lengths.tolist() == [len(text) for text in TEXTS]
    assert found.prefix == () and opened(source, cache).prefix == (BOS,)


@pytest.mark.parametrize('resident', [True, False])
@pytest.mark.parametrize('bos', [True, False])
def test_a_window_is_a_part_of_its_document(source, cache, monkeypatch, resident, bos):
    """At any place, from the first document's BOS to the last one's last token."""
    if not resident:
        monkeypatch.setattr(shards, 'RESIDENT_BYTES', 0)
    found = opened(source, cache, bos=bos)
    texts = whole(found)
    for size in (1, 2, 5):
        places = [(d, e) for d, n in enumerate(found.lengths) for e in range(size, n + 1)]
        documents, ends = np.asarray(places).T
        expected = np.stack([texts[d][e - size : e] for d, e in places])
        windows = found.windows(documents, ends, size)
        assert windows.dtype == np.int32
        np.testing.assert_array_equal(windows, expected)
        assert EOS not in windows
        plain, framed = (opened(source, cache, bos=b, once=False) for b in (False, bos))
        assert framed.lengths.tolist() == plain.lengths.tolist()
        inside = ends <= framed.lengths[documents]
        at = documents[inside], ends[inside], size
        np.testing.assert_array_equal(framed.windows(*at)[:, bos:], plain.windows(*at)[:, bos:])
        assert not bos or (framed.windows(*at)[:, 0] == BOS).all()


@pytest.mark.parametrize('end', [3, 7])
def test_a_window_outside_its_document_is_refused(source, cache, end):
    message = rf'tokens {end - 4} to {end} of document 0, which has 6'
    with pytest.raises(IndexError, match=message):
        opened(source, cache).windows(np.asarray([3, 0]), np.asarray([10, end]), 4)


def test_documents_are_those_of_the_evaluation_source(source, corpus, cache):
    both = DataConfig((Text(str(corpus)), source), eval_source=1, weights=(1.0, 1.0))
    assert open_documents(both, split='test', cache=cache, bos=True).lengths[2] == 2
    assert open_documents(both, split='train', cache=cache).name == 'books'


def test_a_tokenizer_without_begin_mark_is_named_with_the_switch(source, cache, tmp_path):
    import tokenizers

    path = tmp_path / 'tokenizer.json'
    vocabulary = {'</s>': 0, '?': 1}
    tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token='?')).save(str(path))
    config = DataConfig((source,), tokenizer=str(path))
    with pytest.raises(ValueError, match='bos is True; accepted: False or None; the tok'):
        open_documents(config, split='test', cache=cache, bos=True)
    assert open_documents(config, split='test', cache=cache, bos=False).lengths.tolist() == [1] * 7


def test_a_split_without_documents_is_named(source, cache):
    with pytest.raises(ValueError, match=r'data\.source: its validation split has no'):
        opened(source, cache, split='validation')


def test_only_the_split_that_is_read_is_tokenised(tmp_path: pathlib.Path) -> None:
    for split in ('train', 'test'):
        (tmp_path / 'corpus' / split).mkdir(parents=True)
        (tmp_path / 'corpus' / split / 'a.txt').write_text(f'the {split} text')
    config = DataConfig(sources=(Text(str(tmp_path / 'corpus')),))
    cache = tmp_path / 'cache'
    alone = open_documents(config, split='test', cache=cache, bos=False)
    (folder,) = (p for p in (cache / 'tokens').iterdir() if p.is_dir())
    assert not list(folder.glob('train*'))
    stores.open_store(config, 0, 'train', cache)
    both = open_documents(config, split='test', cache=cache, bos=False)
    assert [d.tolist() for d in whole(alone)] == [d.tolist() for d in whole(both)]
    assert bytes(whole(alone)[0].tolist()) == b'the test text'


def test_a_corpus_of_one_test_file_is_read_whole(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'corpus').mkdir()
    rows = [json.dumps({'text': f'document {i}'}) for i in range(40)]
    (tmp_path / 'corpus' / 'test.jsonl').write_text('\n'.join(rows))
    config = DataConfig(sources=(JsonLines(str(tmp_path / 'corpus')),))
    found = open_documents(config, split='test', cache=tmp_path / 'cache', bos=False)
    assert [bytes(d.tolist()).decode() for d in whole(found)] == [
        f'document {i}' for i in range(40)
    ]


def test_a_corpus_without_named_splits_has_documents_by_hash(tmp_path: pathlib.Path) -> None:
    rows = [json.dumps({'text': f'document {i}'}) for i in range(400)]
    (tmp_path / 'corpus.jsonl').write_text('\n'.join(rows))
    config = DataConfig(sources=(JsonLines(str(tmp_path / 'corpus.jsonl')),))
    found = open_documents(config, split='test', cache=tmp_path / 'cache', bos=False)
    assert 5 < len(found.lengths) < 60
