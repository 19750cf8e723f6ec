from __future__ import annotations

import collections
import gzip
import json
import os
import pathlib
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_datasets as tfds
import zstandard

from nope.data import DataConfig, SourceConfig, describe, identity, sources, text_files

ROWS = [f'row {i}: ' + 'some words and more ' * (i % 7 + 1) for i in range(200)]


def read_all(source: SourceConfig, tmp_path: pathlib.Path, part_bytes: int = 1 << 20):
    parts = sources.list_parts('data.sources[0]', source, tmp_path / 'cache', part_bytes)
    return [document for part in parts for document in part.documents()]


def texts_of(documents, split=None) -> list[str]:
    return [text.decode() for kind, text in documents if split in (None, kind)]


def write_jsonl(path: pathlib.Path, rows=ROWS, field: str = 'text') -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = ''.join(json.dumps({field: row, 'id': i}) + '\n' for i, row in enumerate(rows))
    data = content.encode()
    if path.suffix == '.gz':
        data = gzip.compress(data)
    if path.suffix == '.zst':  # two frames, as a parallel compressor leaves them
        half = len(data) // 2
        compress = zstandard.ZstdCompressor().compress
        data = compress(data[:half]) + compress(data[half:])
    path.write_bytes(data)


def write_parquet(path: pathlib.Path, rows=ROWS, field: str = 'text') -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({field: rows, 'id': list(range(len(rows)))})
    pq.write_table(table, path, row_group_size=16)


# Text files.


def test_text_is_one_document_a_file_in_name_order(corpus, tmp_path):
    documents = read_all(SourceConfig('text', str(corpus)), tmp_path)
    files = sorted(corpus.rglob('*.txt'), key=lambda p: p.relative_to(corpus).as_posix())
    assert texts_of(documents) == [file.read_text() for file in files]
    shares = collections.Counter(split for split, _ in documents)
    assert shares['train'] > 45 and shares['validation'] >= 1 and shares['test'] >= 1


@pytest.mark.parametrize('part_bytes', [1, 5000, 1 << 30])
def test_text_does_not_depend_on_the_size_of_parts(corpus, tmp_path, part_bytes):
    source = SourceConfig('text', str(corpus))
    assert read_all(source, tmp_path, part_bytes) == read_all(source, tmp_path)


def test_text_leaves_out_hidden_and_binary_files_and_keeps_invalid_utf8(tmp_path):
    folder = tmp_path / 'text'
    for name, content in {
        'a.txt': b'plain',
        'b.py': b'code',
        'c': b'\xff\xfe not UTF-8',
        'image.png': b'\x89PNG\0\0',
        '.hidden.txt': b'hidden',
        '.git/config': b'hidden',
        'empty.txt': b'',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    texts = [text for _, text in read_all(SourceConfig('text', str(folder)), tmp_path)]
    assert sorted(filter(None, texts)) == sorted([b'plain', b'code', b'\xff\xfe not UTF-8'])


def test_text_folders_named_as_splits_are_the_splits(tmp_path, make_corpus):
    folder = tmp_path / 'text'
    for split in ('train', 'valid', 'test'):
        make_corpus(folder / split, files=3)
    (folder / 'README.md').write_text('not part of it')
    documents = read_all(SourceConfig('text', str(folder)), tmp_path)
    assert collections.Counter(s for s, _ in documents) == {'train': 3, 'validation': 3, 'test': 3}


@pytest.mark.parametrize('files', [3, 4, 8])
def test_few_text_files_still_fill_every_split(tmp_path, make_corpus, files):
    make_corpus(tmp_path / 'text', files=files)
    documents = read_all(SourceConfig('text', str(tmp_path / 'text')), tmp_path)
    assert len(documents) == files
    assert {split for split, _ in documents} == {'train', 'validation', 'test'}


def test_one_text_file_is_split_by_position_at_line_breaks(tmp_path):
    path = tmp_path / 'book.txt'
    path.write_text(''.join(f'line {i}\n' for i in range(1000)))
    documents = read_all(SourceConfig('text', str(path)), tmp_path)
    assert [split for split, _ in documents] == ['train', 'validation', 'test']
    assert ''.join(texts_of(documents)) == path.read_text()
    assert all(text.endswith('\n') for text in texts_of(documents))
    assert 0.89 < len(texts_of(documents)[0]) / path.stat().st_size < 0.91


@pytest.mark.parametrize('text', ['é' * 100_000, '→' * 100_000, 'x' * 10, 'a\n' * 3, '\n'])
def test_cut_text_is_whole_and_valid_without_line_breaks(tmp_path, monkeypatch, text):
    monkeypatch.setattr(text_files, 'PIECE_BYTES', 100_001)
    path = tmp_path / 'book.txt'
    path.write_text(text)
    documents = read_all(SourceConfig('text', str(path)), tmp_path)
    assert ''.join(texts_of(documents)) == text  # decodes: no character is cut


# JSON lines and Parquet.


@pytest.mark.parametrize('suffix', ['.jsonl', '.jsonl.gz', '.jsonl.zst', '.json', '.ndjson'])
def test_jsonl_reads_every_packing(tmp_path, suffix):
    path = tmp_path / f'rows{suffix}'
    write_jsonl(path)
    documents = read_all(SourceConfig('jsonl', str(path)), tmp_path)
    assert texts_of(documents) == ROWS
    assert {split for split, _ in documents} == {'train', 'validation', 'test'}


@pytest.mark.parametrize('part_bytes', [1, 37, 100, 4096])
def test_jsonl_parts_share_no_line_and_lose_none(tmp_path, part_bytes):
    path = tmp_path / 'rows.jsonl'
    write_jsonl(path)
    path.write_bytes(path.read_bytes().removesuffix(b'\n') + b'\n\n')
    assert texts_of(read_all(SourceConfig('jsonl', str(path)), tmp_path, part_bytes)) == ROWS


@pytest.mark.parametrize('part_bytes', [1, 3000, 1 << 30])
def test_parquet_reads_every_row(tmp_path, part_bytes):
    write_parquet(tmp_path / 'rows' / 'a.parquet', ROWS[:120], 'content')
    write_parquet(tmp_path / 'rows' / 'b.parquet', [*ROWS[120:], None], 'content')
    source = SourceConfig('parquet', str(tmp_path / 'rows'), field='content')
    assert texts_of(read_all(source, tmp_path, part_bytes)) == ROWS


@pytest.mark.parametrize(
    ('kind', 'write', 'suffix'),
    [('jsonl', write_jsonl, '.jsonl'), ('parquet', write_parquet, '.parquet')],
)
def test_files_named_as_splits_are_the_splits(tmp_path, kind, write, suffix):
    folder = tmp_path / 'rows'
    write(folder / f'train-00000-of-00002{suffix}', ROWS[:50])
    write(folder / f'train-00001-of-00002{suffix}', ROWS[50:100])
    write(folder / f'validation{suffix}', ROWS[100:120])
    write(folder / f'other{suffix}', ROWS[120:])
    documents = read_all(SourceConfig(kind, str(folder)), tmp_path)
    assert texts_of(documents, 'train') == ROWS[:100]
    assert texts_of(documents, 'validation') == ROWS[100:120]
    assert len(documents) == 120


def test_rows_with_the_same_text_share_a_split(tmp_path):
    path = tmp_path / 'rows.jsonl'
    write_jsonl(path, ROWS + ROWS)
    splits = collections.defaultdict(set)
    for split, text in read_all(SourceConfig('jsonl', str(path)), tmp_path):
        splits[text].add(split)
    assert all(len(found) == 1 for found in splits.values())


def test_jsonl_escapes_that_utf8_cannot_hold_become_question_marks(tmp_path):
    path = tmp_path / 'rows.jsonl'
    path.write_text('{"text": "a\\ud800b"}\n')
    assert texts_of(read_all(SourceConfig('jsonl', str(path)), tmp_path)) == ['a?b']


# TensorFlow Datasets.


class TinyBooks(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version('1.2.3')

    def _info(self):
        features = tfds.features.FeaturesDict({'book_text': tfds.features.Text()})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        return {'train': self._generate_examples(30), 'validation': self._generate_examples(5)}

    def _generate_examples(self, count):
        for i in range(count):
            yield i, {'book_text': ROWS[i]}


@pytest.fixture(scope='module')
def tiny_books(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('tfds')
    TinyBooks(data_dir=folder, file_format='array_record').download_and_prepare()
    tfds.core.add_data_dir(folder)
    return folder


@pytest.mark.parametrize('by_name', [True, False])
@pytest.mark.parametrize('part_bytes', [1, 500, 1 << 20])
def test_tfds_reads_its_own_splits(tiny_books, tmp_path, by_name, part_bytes):
    path = 'tiny_books' if by_name else str(tiny_books / 'tiny_books' / '1.2.3')
    source = SourceConfig('tfds', path, field='book_text')
    documents = read_all(source, tmp_path, part_bytes)
    assert sorted(texts_of(documents, 'train')) == sorted(ROWS[:30])
    assert sorted(texts_of(documents, 'validation')) == sorted(ROWS[:5])


def test_tfds_errors_name_the_field(tiny_books, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data\.sources\[0\]\.path='no_such_set'"):
        read_all(SourceConfig('tfds', 'no_such_set'), tmp_path)
    with pytest.raises(ValueError, match=r"data\.sources\[0\]\.field='text'.*book_text"):
        read_all(SourceConfig('tfds', 'tiny_books'), tmp_path)


# Errors.


@pytest.mark.parametrize('kind', ['text', 'jsonl', 'parquet'])
def test_missing_and_empty_folders_name_the_field(tmp_path, kind):
    with pytest.raises(FileNotFoundError, match=r'data\.sources\[0\]\.path=.*missing'):
        read_all(SourceConfig(kind, str(tmp_path / 'missing')), tmp_path)
    (tmp_path / 'empty').mkdir()
    with pytest.raises(ValueError, match=r'data\.sources\[0\]\.path=.*empty.*holds no file'):
        read_all(SourceConfig(kind, str(tmp_path / 'empty')), tmp_path)


@pytest.mark.parametrize('name', ['folder', 'folder/file.txt'])
def test_unreadable_text_names_the_field(tmp_path, name):
    (tmp_path / 'text' / 'folder').mkdir(parents=True)
    (tmp_path / 'text' / 'folder' / 'file.txt').write_text('text')
    unreadable = tmp_path / 'text' / name
    unreadable.chmod(0)
    try:
        if os.access(unreadable, os.R_OK):
            pytest.skip('nothing is unreadable to root')
        with pytest.raises(PermissionError, match=r'data\.sources\[0\]\.path=.*cannot read'):
            read_all(SourceConfig('text', str(tmp_path / 'text')), tmp_path)
    finally:
        unreadable.chmod(0o700)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('{"text": "ok"}\n{"text": "cut', r'rows\.jsonl at byte 15: not a line of JSON'),
        ('{"body": "x"}\n', r"data\.sources\[0\]\.field='text'; it has the fields \['body'\]"),
        ('{"text": 3}\n', r"no text in data\.sources\[0\]\.field='text'"),
        ('[1]\n', r'no fields'),
    ],
)
def test_bad_lines_say_where_they_are(tmp_path, content, message):
    (tmp_path / 'rows.jsonl').write_text(content)
    with pytest.raises(ValueError, match=message):
        read_all(SourceConfig('jsonl', str(tmp_path / 'rows.jsonl')), tmp_path)


def test_bad_parquet_names_the_field(tmp_path):
    path = tmp_path / 'rows.parquet'
    write_parquet(path)
    for field in ('body', 'id'):
        with pytest.raises(ValueError, match=rf"data\.sources\[0\]\.field='{field}'.*text"):
            read_all(SourceConfig('parquet', str(path), field=field), tmp_path)
    path.write_text('not parquet')
    with pytest.raises(ValueError, match=r'data\.sources\[0\]\.path: .*not a Parquet file'):
        read_all(SourceConfig('parquet', str(path)), tmp_path)


def test_jsonl_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / 'rows.csv').write_text('a,b')
    with pytest.raises(ValueError, match=r'must end in one of \.jsonl'):
        read_all(SourceConfig('jsonl', str(tmp_path / 'rows.csv')), tmp_path)


# Identity and description.


def test_identity_is_of_the_content_and_not_of_place_or_time(corpus, tmp_path):
    copy = tmp_path / 'another_name'
    shutil.copytree(corpus, copy)
    for path in copy.rglob('*.txt'):
        os.utime(path, (0, 0))
    first = identity(DataConfig((SourceConfig('text', str(corpus)),)))
    second = identity(DataConfig((SourceConfig('text', str(copy)),)))
    assert first == second
    assert str(corpus.parent) not in json.dumps(first)


@pytest.mark.parametrize('change', ['content', 'name', 'removal'])
def test_identity_changes_with_the_content(corpus, tmp_path, change):
    folder = tmp_path / 'text'
    shutil.copytree(corpus, folder)
    config = DataConfig((SourceConfig('text', str(folder)),))
    before = identity(config)
    path = folder / 'part1' / 'file0001.txt'
    if change == 'content':
        text = path.read_text()
        path.write_text(text[:-1] + ('y' if text[-1] != 'y' else 'z'))
    elif change == 'name':
        path.rename(path.with_name('renamed.txt'))
    else:
        path.unlink()
    assert identity(config) != before


def test_identity_counts_weights_in_a_mixture_only(corpus):
    def of(*weights):
        source = [SourceConfig('text', str(corpus), weight=weight) for weight in weights]
        return identity(DataConfig(tuple(source)))

    assert of(1.0) == of(2.0)
    assert of(1.0, 1.0) != of(1.0, 2.0)


def test_identity_of_the_standard_library_names_python_and_the_builder():
    (source,) = identity(DataConfig())['sources']
    assert source['python'].startswith('3.')
    assert source['builder']
    assert source['bytes'] > 1_000_000


def test_describe_reads_as_a_caption(corpus):
    assert describe(DataConfig()) == 'Python standard library sources, bytes'
    mixed = DataConfig(
        (SourceConfig('text', '/data/web', weight=3), SourceConfig('jsonl', 'code.jsonl')),
        tokenizer='/models/tokenizer.model',
    )
    assert describe(mixed) == 'web (75.0%) + code.jsonl (25.0%), tokenizer.model'
