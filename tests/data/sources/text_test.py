from __future__ import annotations

import collections
import gzip

import pytest

from nope.data.sources import Text, text
from nope.data.splits import split_of
from nope.runtime import files
from tests.data.sources.corpora import COMPRESSORS, read_all, texts_of


def test_text_is_one_document_a_file_in_name_order(corpus, tmp_path):
    documents = read_all(Text(str(corpus)), tmp_path)
    files = sorted(corpus.rglob('*.txt'), key=lambda p: p.relative_to(corpus).as_posix())
    assert texts_of(documents) == [file.read_text() for file in files]
    shares = collections.Counter(split for split, _ in documents)
    assert shares['train'] > 45 and shares['validation'] >= 1 and shares['test'] >= 1


@pytest.mark.parametrize('part_bytes', [1, 5000, 1 << 30])
def test_text_does_not_depend_on_the_size_of_parts(corpus, tmp_path, part_bytes):
    source = Text(str(corpus))
    assert read_all(source, tmp_path, part_bytes) == read_all(source, tmp_path)


def test_a_single_file_that_is_packed_is_refused(tmp_path):
    path = tmp_path / 'corpus.txt.gz'
    path.write_bytes(gzip.compress(b'a text of some words ' * 99))
    message = rf'data\.source: {path} is no text but binary; unpack them'
    with pytest.raises(ValueError, match=message):
        Text(str(path)).identity()


@pytest.mark.parametrize('name', ['corpus.jsonl', ''])
def test_json_lines_are_read_as_plain_text_with_a_warning(tmp_path, caplog, name):
    (tmp_path / 'corpus.jsonl').write_text('{"text": "a"}\n')
    path = tmp_path / name
    Text(str(path)).identity()
    (said,) = caplog.messages
    assert said.endswith(f'{path} is read as plain text; the source jsonl:{path} reads them')
    caplog.clear()
    for other in 'ab':
        (tmp_path / f'{other}.md').write_text('words')
    Text(str(tmp_path)).identity()
    assert not caplog.messages


def test_an_empty_file_is_no_part_of_the_corpus(tmp_path):
    (tmp_path / 'a.txt').write_text('words')
    before = Text(str(tmp_path)).identity()
    (tmp_path / 'b.txt').touch()
    assert Text(str(tmp_path)).identity() == before


def test_text_leaves_out_hidden_and_binary_files_and_keeps_invalid_utf8(tmp_path):
    folder = tmp_path / 'text'
    for name, content in {
        'a.txt': b'plain',
        'b.py': b'code',
        'c': b'\xff not UTF-8',
        'image.png': b'\x89PNG\0\0',
        '.hidden.txt': b'hidden',
        '.git/config': b'hidden',
        'empty.txt': b'',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    texts = [text for _, text in read_all(Text(str(folder)), tmp_path)]
    assert sorted(filter(None, texts)) == sorted([b'plain', b'code', b'\xff not UTF-8'])


@pytest.mark.parametrize('encoding', ['utf-8-sig', 'utf-16', 'utf-16-be', 'utf-32'])
@pytest.mark.parametrize('files', [1, 9])
def test_text_with_a_byte_order_mark_is_read_as_utf8(tmp_path, encoding, files):
    """As the same text without one, but under another identity."""
    content = [f'{i} é→語 of a line\r\n' * 9 for i in range(files)]
    found = {}
    for name, mark in (('plain', ''), ('marked', '\ufeff' if encoding.endswith('be') else '')):
        folder = tmp_path / name
        folder.mkdir()
        for i, document in enumerate(content):
            coded = (mark + document).encode(encoding if name == 'marked' else 'utf-8')
            (folder / f'{i}.txt').write_bytes(coded)
        source = Text(str(folder / '0.txt' if files == 1 else folder))
        found[name] = source.identity(), read_all(source, tmp_path)
    plain, marked = found['plain'], found['marked']
    assert ''.join(sorted(texts_of(marked[1]))) == ''.join(sorted(texts_of(plain[1])))
    assert marked[0] != plain[0] and 'marks' not in plain[0]


def test_utf16_that_is_damaged_is_left_out_by_name_and_alone_refused(tmp_path, caplog):
    folder = tmp_path / 'text'
    folder.mkdir()
    (folder / 'a.txt').write_text('text')
    (folder / 'b.txt').write_bytes('text'.encode('utf-16')[:-1])
    assert ''.join(texts_of(read_all(Text(str(folder)), tmp_path))) == 'text'
    assert caplog.messages == [f"data.source: left out of '{folder}': 1 damaged UTF-16 (b.txt)"]
    with pytest.raises(ValueError, match=r'b\.txt is no text but damaged UTF-16'):
        read_all(Text(str(folder / 'b.txt')), tmp_path)


@pytest.mark.parametrize('name', ['a.txt', '.'])
def test_utf16_above_the_size_of_a_document_is_refused_by_name(tmp_path, monkeypatch, name):
    monkeypatch.setattr(files, 'RECODED_BYTES', 99)
    (tmp_path / 'a.txt').write_text('text' * 99, encoding='utf-16')
    with pytest.raises(ValueError, match=r'^data\.source: .*a\.txt is in UTF-16 and has more than'):
        Text(str(tmp_path / name)).identity()


@pytest.mark.parametrize('suffix', COMPRESSORS)
def test_packed_text_is_no_text_however_short(tmp_path, suffix):
    (tmp_path / 'README.md').write_text('what they are')
    (tmp_path / f'a.txt{suffix}').write_bytes(COMPRESSORS[suffix](b'a'))
    with pytest.raises(ValueError, match=rf'packed files \(a\.txt{suffix}\); unpack them'):
        Text(str(tmp_path)).identity()


def test_text_folders_named_as_splits_are_the_splits(tmp_path, make_corpus):
    folder = tmp_path / 'text'
    for split in ('train', 'valid', 'test'):
        make_corpus(folder / split, files=3)
    (folder / 'README.md').write_text('not part of it')
    documents = read_all(Text(str(folder)), tmp_path)
    assert collections.Counter(s for s, _ in documents) == {'train': 3, 'validation': 3, 'test': 3}


@pytest.mark.parametrize('files', [2, 3])
def test_few_texts_are_each_cut_by_position(tmp_path, make_corpus, files):
    make_corpus(tmp_path / 'text', files=files)
    documents = read_all(Text(str(tmp_path / 'text')), tmp_path)
    assert [s for s, _ in documents] == ['train', 'validation', 'test'] * files


@pytest.mark.parametrize('lines', [1, 3])
def test_few_texts_of_few_lines_still_fill_every_split(tmp_path, lines):
    folder = tmp_path / 'text'
    folder.mkdir()
    for i in range(10):
        (folder / f'{i}.txt').write_text('\n'.join([f'paragraph {i} ' * 500] * lines))
    documents = read_all(Text(str(folder)), tmp_path)
    shares = collections.Counter(split for split, _ in documents)
    assert len(documents) == 10 and shares['validation'] >= 1 and shares['test'] >= 1


def test_empty_files_fill_no_split(tmp_path):
    folder = tmp_path / 'text'
    folder.mkdir()
    names = [f'chapter{i}.txt' for i in range(1, 31)]
    empty = [name for name in names if split_of(name.encode()) == 'validation']
    for name in names:
        (folder / name).write_text('' if name in empty else 'a line\n' * 100)
    shares = collections.Counter(split for split, _ in read_all(Text(str(folder)), tmp_path))
    assert empty and set(shares) == {'train', 'validation', 'test'}


def test_one_long_text_among_many_does_not_leave_training_without_text(tmp_path):
    """By a hash of its name the long one is of the test."""
    folder = tmp_path / 'text'
    folder.mkdir()
    names = [f'{i}.txt' for i in range(60)]
    (long,) = [name for name in names if split_of(name.encode()) == 'test'][:1]
    for name in names:
        (folder / name).write_text('a line\n' * (10_000 if name == long else 10))
    documents = read_all(Text(str(folder)), tmp_path)
    sizes = collections.Counter()
    for split, document in documents:
        sizes[split] += len(document)
    assert 0.88 < sizes['train'] / sizes.total() < 0.92
    (folder / long).write_text('a line\n' * 10)
    documents = read_all(Text(str(folder)), tmp_path)
    assert len(documents) == 60  # by hash, no file is cut


def test_one_text_file_is_split_by_position_at_line_breaks(tmp_path):
    path = tmp_path / 'book.txt'
    path.write_text(''.join(f'line {i}\n' for i in range(1000)))
    documents = read_all(Text(str(path)), tmp_path)
    assert [split for split, _ in documents] == ['train', 'validation', 'test']
    assert ''.join(texts_of(documents)) == path.read_text()
    assert all(text.endswith('\n') for text in texts_of(documents))
    assert 0.89 < len(texts_of(documents)[0]) / path.stat().st_size < 0.91


@pytest.mark.parametrize('content', ['é' * 100_000, '→' * 100_000, 'x' * 10, 'a\n' * 3, '\n'])
def test_cut_text_is_whole_and_valid_without_line_breaks(tmp_path, monkeypatch, content):
    monkeypatch.setattr(text, 'DOCUMENT_BYTES', 100_001)
    path = tmp_path / 'book.txt'
    path.write_text(content)
    documents = read_all(Text(str(path)), tmp_path)
    assert ''.join(texts_of(documents)) == content  # decodes: no character is cut
