"""What the sources made of files have in common."""

from __future__ import annotations

import json
import os
import shutil

import pyarrow as pa
import pytest

from nope.data import prepare
from nope.data.sources import KINDS, JsonLines, Text
from nope.data.splits import named_splits
from tests.data.sources.corpora import ROWS, read_all, texts_of, write_jsonl, write_parquet
from tests.runtime.lfs import pointer


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


def told_of_files(caplog):
    """What was logged but for the word that JSON lines are read as plain text."""
    return [said for said in caplog.messages if 'plain text' not in said]


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


def test_a_file_that_declares_another_split_is_another_corpus(tmp_path):
    found = {}
    for name in ('a', 'b', 'train', 'test', 'validation', 'val'):
        path = tmp_path / f'{name}.jsonl'
        path.write_text('{"text": "a"}\n')
        found[name] = json.dumps(JsonLines(str(path)).identity())
    assert found['a'] == found['b'] == found['train'] and found['val'] == found['validation']
    assert len(set(found.values())) == 3


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


@pytest.mark.parametrize('kind', ['text', 'jsonl'])
def test_links_are_followed_but_not_in_circles(tmp_path, kind, caplog):
    folder, elsewhere = tmp_path / 'rows', tmp_path / 'elsewhere'
    for path in (folder / 'real/a.json', elsewhere / 'deep/b.json', tmp_path / 'c.json'):
        write_jsonl(path, [path.name])
    (folder / 'link').symlink_to(elsewhere)
    (folder / 'c.json').symlink_to('../c.json')
    (folder / 'real' / 'around').symlink_to('..')
    (elsewhere / 'deep' / 'back').symlink_to(folder)
    found = ''.join(texts_of(read_all(KINDS[kind](str(folder)), tmp_path)))
    assert all(found.count(name) == 1 for name in ('a.json', 'b.json', 'c.json'))
    assert not told_of_files(caplog)
    (folder / 'gone.json').symlink_to('nowhere')
    KINDS[kind](str(folder)).identity()
    assert told_of_files(caplog) == [
        f"data.source: left out of '{folder}': 1 broken link (gone.json), "
        '2 link to a folder around it (link/deep/back)'
    ]


def test_a_folder_that_is_listed_through_a_link_is_not_written_into(tmp_path):
    (tmp_path / 'text').mkdir()
    (tmp_path / 'out').mkdir()
    (tmp_path / 'text' / 'a.txt').write_text('text')
    (tmp_path / 'text' / 'link').symlink_to('../out')
    with pytest.raises(ValueError, match='into which is written'):
        prepare.prepare(Text(str(tmp_path / 'text')), 'bytes', tmp_path / 'out/a', cache=tmp_path)


def test_a_link_to_the_folder_around_a_corpus_ends(tmp_path):
    (tmp_path / 'text').mkdir()
    (tmp_path / 'text' / 'a.txt').write_text('text')
    (tmp_path / 'text' / 'up').symlink_to('..')
    assert Text(str(tmp_path / 'text')).identity()['files'] == 1


@pytest.mark.parametrize(
    ('kind', 'name', 'said'),
    [
        ('text', 'more.parquet', '1 binary (more.parquet)'),
        ('text', 'more.txt', '1 binary (more.txt)'),
        ('jsonl', 'more.csv', '1 of another suffix (more.csv)'),
        ('jsonl', 'more.jsonl.lz4', '1 of another suffix (more.jsonl.lz4)'),
        ('jsonl', 'part-00000', '1 of another suffix (part-00000)'),
        ('text', 'cover.png', None),
        ('jsonl', 'README.md', None),
        ('jsonl', '.hidden.jsonl', None),
    ],
)
def test_files_that_are_left_out_are_said_where_they_may_be_missed(
    tmp_path, caplog, kind, name, said
):
    write_jsonl(tmp_path / 'a.jsonl')
    (tmp_path / name).write_bytes(b'a\0b')
    source = KINDS[kind](str(tmp_path))
    assert source.identity() == source.identity()
    expected = [f"data.source: left out of '{tmp_path}': {said}"] if said else []
    assert told_of_files(caplog) == expected


def test_a_folder_without_a_file_of_the_kind_says_what_is_in_it(tmp_path):
    for name in ('.a.jsonl', '.git/b.jsonl', 'c.csv'):
        write_jsonl(tmp_path / name)
    message = r'holds no file of this kind; in it: 1 of another suffix \(c\.csv\), 2 hidden \(\.a'
    with pytest.raises(ValueError, match=message):
        JsonLines(str(tmp_path)).identity()


def save_to_disk(folder):
    """As `datasets` does."""
    for split in ('train', 'test'):
        (folder / split).mkdir(parents=True)
        table = pa.table({'text': ROWS})
        with pa.ipc.new_stream(folder / split / 'data-00000-of-00001.arrow', table.schema) as file:
            file.write_table(table)
        for name in ('dataset_info.json', 'state.json'):
            (folder / split / name).write_text('{}')
    (folder / 'dataset_dict.json').write_text('{}')


def clone(folder):
    """As the hub lays a data set out, with a program that reads it."""
    for split in ('train', 'test'):
        write_parquet(folder / 'data' / f'{split}-00000-of-00001.parquet')
    for name in ('README.md', '.gitattributes', 'load.py'):
        (folder / name).write_text('about the data')


def shards(folder):
    write_jsonl(folder.parent / 'rows.jsonl')
    source = JsonLines(str(folder.parent / 'rows.jsonl'))
    prepare.prepare(source, 'bytes', folder, cache=folder.parent)


@pytest.mark.parametrize(
    ('kind', 'write', 'advice'),
    [
        ('text', save_to_disk, r"export them first, with datasets\.load_from_disk\('{}'\)"),
        ('jsonl', save_to_disk, r"export them first, with datasets\.load_from_disk\('{}'\)"),
        ('parquet', save_to_disk, r"export them first, with datasets\.load_from_disk\('{}'\)"),
        ('text', clone, 'the source parquet:{}/data reads them$'),
        ('jsonl', clone, 'the source parquet:{}/data reads them$'),
        ('text', shards, 'the source shards:{} reads them$'),
        ('jsonl', shards, 'the source shards:{} reads them$'),
    ],
)
def test_a_data_set_of_another_kind_is_refused_with_what_to_do(tmp_path, kind, write, advice):
    folder = tmp_path / 'data set'
    write(folder)
    with pytest.raises(ValueError, match=advice.format(folder)):
        KINDS[kind](str(folder)).identity()


def test_texts_beside_some_data_of_another_kind_are_read(tmp_path, caplog):
    write_parquet(tmp_path / 'fixture.parquet')
    for name in ('a.py', 'b.md', '.gitattributes'):
        (tmp_path / name).write_text(name)
    assert Text(str(tmp_path)).identity()['files'] == 2
    assert 'left out' in caplog.text


@pytest.mark.parametrize('name', ['a.txt', 'a.jsonl.zst', 'a.parquet'])
@pytest.mark.parametrize('alone', [True, False])
def test_a_pointer_of_git_lfs_is_no_text(tmp_path, name, alone):
    (tmp_path / 'b.txt').write_text('text')
    (tmp_path / name).write_bytes(pointer(548_105_171))
    own = {'.zst': 'jsonl', '.parquet': 'parquet'}.get(os.path.splitext(name)[1], 'text')
    for kind in {own, 'text'}:
        with pytest.raises(
            ValueError, match=rf'^data\.source: {tmp_path / name} is a Git LFS poin'
        ):
            KINDS[kind](str(tmp_path / name if alone else tmp_path)).identity()
