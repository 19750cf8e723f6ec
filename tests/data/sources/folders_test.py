"""What the sources made of files have in common."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from nope.data.sources import KINDS, Text
from nope.data.splits import named_splits
from tests.data.sources.corpora import ROWS, read_all, texts_of, write_jsonl, write_parquet


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
    documents = read_all(KINDS[kind](str(folder)), tmp_path)
    assert texts_of(documents, 'train') == ROWS[:100]
    assert texts_of(documents, 'validation') == ROWS[100:120]
    assert len(documents) == 120


@pytest.mark.parametrize(
    'names',
    [
        ('train_0.txt', 'validation_0.txt', 'test_0.txt'),
        ('Train.txt', 'VALID.txt', 'Test-1.txt'),
        ('en/train/a.txt', 'en/val/b.txt', 'de/test/a.txt'),
        ('data/train-00000-of-00001.txt', 'data/validation.txt', 'data/test.txt'),
    ],
)
def test_splits_that_every_file_declares_in_another_form_are_the_splits(tmp_path, names):
    folder = tmp_path / 'text'
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    found = dict(read_all(Text(str(folder)), tmp_path))
    assert found == dict(zip(('train', 'validation', 'test'), map(str.encode, names), strict=True))
    (folder / 'other.txt').write_text('a program has such names too')
    assert not named_splits([*names, 'other.txt'])


def test_files_of_no_split_are_named(tmp_path, caplog):
    folder = tmp_path / 'text'
    folder.mkdir()
    for name in ('train.txt', 'test.txt', 'validation_0.txt.old', 'README.md'):
        (folder / name).write_text(name)
    assert len(read_all(Text(str(folder)), tmp_path)) == 2
    (said,) = caplog.messages
    assert '2 of 4 files are in none of them and are left out: README.md, valid' in said


@pytest.mark.parametrize('kind', ['text', 'jsonl', 'parquet'])
def test_missing_and_empty_folders_name_the_field(tmp_path, kind):
    with pytest.raises(FileNotFoundError, match=r'data\.source: .*missing'):
        read_all(KINDS[kind](str(tmp_path / 'missing')), tmp_path)
    (tmp_path / 'empty').mkdir()
    with pytest.raises(ValueError, match=r'data\.source: .*empty.*holds no file'):
        read_all(KINDS[kind](str(tmp_path / 'empty')), tmp_path)


@pytest.mark.parametrize('name', ['folder', 'folder/file.txt'])
def test_unreadable_text_names_the_field(tmp_path, name):
    (tmp_path / 'text' / 'folder').mkdir(parents=True)
    (tmp_path / 'text' / 'folder' / 'file.txt').write_text('text')
    unreadable = tmp_path / 'text' / name
    unreadable.chmod(0)
    try:
        if os.access(unreadable, os.R_OK):
            pytest.skip('nothing is unreadable to root')
        with pytest.raises(PermissionError, match=r'data\.source: cannot read'):
            read_all(Text(str(tmp_path / 'text')), tmp_path)
    finally:
        unreadable.chmod(0o700)


def test_identity_is_of_the_content_and_not_of_place_or_time(corpus, tmp_path):
    copy = tmp_path / 'another_name'
    shutil.copytree(corpus, copy)
    for path in copy.rglob('*.txt'):
        os.utime(path, (0, 0))
    first = Text(str(corpus)).identity()
    assert Text(str(copy)).identity() == first
    assert str(corpus.parent) not in json.dumps(first)


@pytest.mark.parametrize('change', ['content', 'name', 'removal'])
def test_identity_changes_with_the_content(corpus, tmp_path, change):
    folder = tmp_path / 'text'
    shutil.copytree(corpus, folder)
    source = Text(str(folder))
    before = source.identity()
    path = folder / 'part1' / 'file0001.txt'
    if change == 'content':
        text = path.read_text()
        path.write_text(text[:-1] + ('y' if text[-1] != 'y' else 'z'))
    elif change == 'name':
        path.rename(path.with_name('renamed.txt'))
    else:
        path.unlink()
    assert source.identity() != before


@pytest.mark.parametrize(
    ('kind', 'suffix'), [('text', '.txt'), ('jsonl', '.jsonl'), ('parquet', '.parquet')]
)
@pytest.mark.parametrize('where', ['file', 'folder', 'alone'])
def test_a_file_name_that_is_no_utf8_is_refused_by_field(tmp_path, kind, suffix, where):
    folder = tmp_path / os.fsdecode(b'rows\xff') if where == 'folder' else tmp_path / 'rows'
    path = folder / (f'a{suffix}' if where == 'folder' else os.fsdecode(b'a\xff') + suffix)
    (write_parquet if kind == 'parquet' else write_jsonl)(tmp_path / 'written')
    folder.mkdir()
    (tmp_path / 'written').rename(path)
    source = KINDS[kind](str(path if where == 'alone' else folder))
    with pytest.raises(
        ValueError, match=r'data\.source: .*\\udcff.*its name is not UTF-8'
    ) as caught:
        source.identity()
    str(caught.value).encode()  # can be printed
    with pytest.raises(ValueError, match='its name is not UTF-8'):
        read_all(source, tmp_path)
