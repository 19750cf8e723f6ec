from __future__ import annotations

import errno
import gc
import json
import pathlib
import shutil
import weakref

import numpy as np
import pytest

from nope.data import load_tokenizer, prepare, shards
from nope.data.sources import Text


@pytest.fixture(scope='module')
def prepared(corpus, tmp_path_factory):
    """The corpus in shards of many parts, and the train stream that they should hold."""
    out = tmp_path_factory.mktemp('shards') / 'corpus'
    source = Text(str(corpus))
    metadata = prepare.prepare(source, 'bytes', out, cache=out, part_bytes=20_000)
    parts = source.list_parts(out, 20_000)
    tokenizer = load_tokenizer('bytes')
    stream = [
        np.append(tokenizer.encode(text), tokenizer.eos_id)
        for part in parts
        for split, text in part.documents()
        if split == 'train'
    ]
    return out, metadata, stream


@pytest.fixture(params=['resident', 'paged'])
def store(prepared, request, monkeypatch):
    if request.param == 'paged':
        monkeypatch.setattr(shards, 'RESIDENT_BYTES', 0)
        monkeypatch.setattr(shards, '_OPEN_READERS', 2)
    return shards.TokenStore(prepared[0], 'train', prepared[1])


def test_stream_is_the_documents_each_with_eos(prepared, store):
    stream = np.concatenate(prepared[2])
    assert store.tokens == len(stream)
    assert store.documents == len(prepared[2])
    assert store.longest == max(len(ids) - 1 for ids in prepared[2])
    whole = store.windows(np.asarray([0]), store.tokens)
    assert whole.dtype == np.int32
    assert np.array_equal(whole[0], stream)


def test_a_store_holds_few_files_open_and_none_once_it_is_in_memory(prepared, monkeypatch):
    """The limit of macOS is 256, and a process has a store a source and split."""
    monkeypatch.setattr(shards.files, 'most_open', lambda: 48)
    resident, paged = (shards.TokenStore(prepared[0], 'train', prepared[1]) for _ in range(2))
    resident.windows(np.asarray([0]), resident.tokens)
    assert not resident._readers
    monkeypatch.setattr(shards, 'RESIDENT_BYTES', 0)
    paged.windows(np.asarray([0]), paged.tokens)
    assert len(paged._readers) == 3 < len(paged._stems)


def test_a_shard_that_cannot_be_opened_is_not_called_damaged(prepared, monkeypatch):
    store = shards.TokenStore(prepared[0], 'train', prepared[1])

    def full(*_, **__):
        raise OSError(errno.EMFILE, 'Too many open files')

    monkeypatch.setattr(pathlib.Path, 'open', full)
    with pytest.raises(OSError, match='Too many open files'):
        store.windows(np.asarray([0]), 8)


def test_what_a_store_holds_goes_with_its_last_reference(prepared):
    """A process that trains and measures in turn opens the text anew each time."""
    store = shards.TokenStore(prepared[0], 'train', prepared[1])
    store.begins(np.asarray([0]), 8)
    gone = weakref.ref(store)
    gc.disable()
    try:
        del store
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize('length', [1, 7, 4096, shards.PAGE, 50_000])
def test_windows_of_any_length_start_anywhere(prepared, store, length):
    stream = np.concatenate(prepared[2])
    rng = np.random.default_rng(length)
    starts = rng.integers(0, len(stream) - length + 1, 20)
    starts[:2] = 0, len(stream) - length
    expected = np.stack([stream[s : s + length] for s in starts])
    assert np.array_equal(store.windows(starts, length), expected)


def test_document_spans_lie_between_separators(prepared, store):
    starts, lengths = store.document_spans()
    assert np.array_equal(lengths, [len(ids) - 1 for ids in prepared[2]])
    ends = store.windows(starts + lengths, 1)
    assert (ends == 256).all()


@pytest.mark.parametrize('length', [1, 7, 4096, 50_000])
def test_the_first_tokens_of_documents_are_known_in_any_window(prepared, store, length):
    firsts, _ = store.document_spans()
    stream = np.isin(np.arange(store.tokens), firsts)
    starts = np.random.default_rng(length).integers(0, len(stream) - length + 1, 20)
    starts[:3] = 0, len(stream) - length, firsts[3]
    expected = np.stack([stream[s : s + length] for s in starts])
    assert np.array_equal(store.begins(starts, length), expected)


def test_tokens_fit_the_vocabulary():
    assert shards.token_dtype(258) == np.uint16
    assert shards.token_dtype(65536) == np.uint16
    assert shards.token_dtype(65537) == np.uint32


def test_missing_shard_is_named(prepared, tmp_path):
    broken = shards.TokenStore(tmp_path, 'train', prepared[1])
    with pytest.raises(FileNotFoundError, match=r'train-00000-of-\d+\.array_record is missing'):
        broken.windows(np.asarray([0]), 4)


def test_folder_without_or_with_other_metadata_names_the_field(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'data\.mixture\[1\]: .*no folder.*missing'):
        shards.read_metadata('data.mixture[1]', tmp_path / 'missing')
    with pytest.raises(FileNotFoundError, match=r'data\.mixture\[1\]: .*metadata\.json'):
        shards.read_metadata('data.mixture[1]', tmp_path)
    (tmp_path / 'metadata.json').write_text(json.dumps({'format': 'else', 'version': 9}))
    with pytest.raises(ValueError, match=r"data\.mixture\[1\]: .*'else' version 9"):
        shards.read_metadata('data.mixture[1]', tmp_path)


@pytest.fixture(params=['array_record', 'documents.npy'])
def shard(prepared, request, tmp_path):
    """One file of a copy of the shards, and what reads all of them, or the refusal."""
    folder = tmp_path / 'shards'
    shutil.copytree(prepared[0], folder)
    path = folder / f'{shards.shard_stem("train", 1, prepared[1]["parts"])}.{request.param}'

    def read() -> str | None:
        store = shards.TokenStore(folder, 'train', prepared[1])
        try:
            tokens = store.windows(np.asarray([0]), store.tokens)[0]
            starts, _ = store.document_spans()
        except ValueError as error:
            return str(error)
        assert np.array_equal(tokens, np.concatenate(prepared[2]))
        assert np.array_equal(np.diff(starts), [len(ids) for ids in prepared[2]][:-1])
        return None

    assert read() is None
    return path, read


def test_a_shard_with_a_changed_byte_is_refused_by_name(shard):
    path, read = shard
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert (read() or '').startswith(f'token shard {path} is damaged: ')


def test_a_shard_with_another_ones_content_is_refused(shard):
    path, read = shard
    other = path.with_name(path.name.replace('-00001-', '-00000-'))
    path.write_bytes(other.read_bytes())
    assert (read() or '').startswith(f'token shard {path} is damaged: ')
    path.write_bytes(2 * path.read_bytes())
    assert (read() or '').startswith(f'token shard {path} is damaged: ')
