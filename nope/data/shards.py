"""Token shards: a tokenised corpus on disk, read in blocks of any length.

A folder holds, for every part of the corpus and every split with documents in it,

    <split>-00003-of-00012.array_record    pages of 8,192 tokens (the last one shorter), little
                                           endian uint16, uint32 for vocabularies above 65,536
    <split>-00003-of-00012.documents.npy   int64 tokens of each document, its EOS included
    unit-00003-of-00012.json               counts and digests; written last: the part is whole

and `metadata.json`, written when all parts are whole. The documents of a split, each followed
by EOS, form one stream: shards follow each other and a block may span two of them, so that only
the remainder at the very end of a split is lost, whatever the block length.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import hashlib
import pathlib
import threading
from collections.abc import Callable, Sequence
from tokenize import TokenError
from typing import Any

import numpy as np

from nope.data import digest
from nope.runtime import files
from nope.runtime.caching import cached_method

FORMAT = 'nope-token-shards'
VERSION = 1
PAGE = 8192
RESIDENT_BYTES = 256 << 20
_OPEN_READERS = 256  # of a store at most, and no more than
_SHARE_OF_FILES = 16  # the limit of open files divided by this: a process has several stores

# What array_record and numpy raise for a damaged file.
_UNREADABLE = (EOFError, IndexError, OSError, RuntimeError, SyntaxError, ValueError, TokenError)


def token_dtype(vocab_size: int) -> np.dtype:
    return np.dtype('<u2') if vocab_size <= 1 << 16 else np.dtype('<u4')


def shard_stem(split: str, index: int, count: int) -> str:
    return f'{split}-{index:05d}-of-{count:05d}'


class ShardWriter:
    """Writes one shard under temporary names; `close` renames it into place."""

    def __init__(self, folder: pathlib.Path, stem: str, dtype: np.dtype) -> None:
        from array_record.python import array_record_module

        self._folder = folder
        self._stem = stem
        self._dtype = dtype
        self._partial = files.unfinished(folder / f'{stem}.array_record')
        self._documents_partial = files.unfinished(folder / f'{stem}.documents.npy')
        with self._writing():
            self._writer = array_record_module.ArrayRecordWriter(
                str(self._partial), 'group_size:1,uncompressed'
            )
        self._pending: list[np.ndarray] = []
        self._pending_tokens = 0
        self._documents: list[int] = []
        self._digest = hashlib.blake2b(digest_size=digest.DIGEST_BYTES)

    def add(self, ids: np.ndarray) -> None:
        """Appends one document: int32 ids with EOS as the last one."""
        self._documents.append(len(ids))
        self._pending.append(ids.astype(self._dtype))
        self._pending_tokens += len(ids)
        if self._pending_tokens >= PAGE:
            self._write_pages(whole_only=True)

    def close(self) -> dict[str, Any]:
        """Finishes the shard and returns its counts: documents, tokens, longest, digest. OSError
        with the path where it cannot be written."""
        self._write_pages(whole_only=False)
        with self._writing():
            self._writer.close()
        documents = np.asarray(self._documents, np.int64)
        documents_path = self._folder / f'{self._stem}.documents.npy'
        documents_partial = self._documents_partial
        with files.writing(documents_path), documents_partial.open('wb') as file:
            np.save(file, documents)
        for path in (documents_partial, self._partial):
            files.sync(path)
        documents_partial.replace(documents_path)
        self._partial.replace(self._folder / f'{self._stem}.array_record')
        return {
            'documents': len(documents),
            'tokens': int(documents.sum()),
            'longest': int(documents.max()) - 1,
            'digest': self._digest.hexdigest(),
        }

    def discard(self) -> None:
        """Removes what has no final name yet, of this writer alone: another may be at the same
        shard where machines do not see each other's locks."""
        for path in (self._partial, self._documents_partial):
            path.unlink(missing_ok=True)

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return files.writing(self._folder / f'{self._stem}.array_record', RuntimeError)

    def _write_pages(self, whole_only: bool) -> None:
        tokens = np.concatenate(self._pending) if self._pending else np.zeros(0, self._dtype)
        end = len(tokens) // PAGE * PAGE if whole_only else len(tokens)
        for start in range(0, end, PAGE):
            page = tokens[start : min(start + PAGE, end)].tobytes()
            with self._writing():
                self._writer.write(page)
            self._digest.update(page)
        self._pending = [tokens[end:]]
        self._pending_tokens = len(tokens) - end


def read_metadata(name: str, folder: pathlib.Path) -> dict[str, Any]:
    """The metadata of a prepared folder. FileNotFoundError or ValueError where there is none, or
    one of another format. name: of the folder's field in messages."""
    if not folder.is_dir():
        raise FileNotFoundError(f'{name}: there is no folder {str(folder)!r}')
    path = folder / 'metadata.json'
    if not path.is_file():
        raise FileNotFoundError(
            f'{name}: no metadata.json in {str(folder)!r}: not a folder of token shards, or its '
            'preparation has not finished (run the same nope prepare command again)'
        )
    metadata = files.read_json(path)
    if not isinstance(metadata, dict):
        raise ValueError(f'{name}: {path} is damaged: it describes nothing')
    if (metadata.get('format'), metadata.get('version')) != (FORMAT, VERSION):
        raise ValueError(
            f'{name}: the format of {str(folder)!r} is {metadata.get("format")!r} version '
            f'{metadata.get("version")!r}; this program reads {FORMAT!r} version {VERSION}'
        )
    return metadata


class TokenStore:
    """Reads windows of one split's token stream. Safe to share between threads.

    A split of at most 256 MiB stays in memory; of a larger one, only the pages that a window
    touches are read. Shards that fail their checks or hold other counts than the metadata say are
    refused, with ValueError, when they are first read.
    """

    def __init__(self, folder: pathlib.Path, split: str, metadata: dict[str, Any]) -> None:
        entries: Sequence[dict[str, Any]] = metadata['splits'][split]
        self._folder = folder
        self._entries = entries
        self._dtype = np.dtype(metadata['dtype'])
        self._stems = [shard_stem(split, e['part'], metadata['parts']) for e in entries]
        sizes = [e['tokens'] for e in entries]
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._readers: collections.OrderedDict[int, Any] = collections.OrderedDict()
        self._lock = threading.Lock()
        # Of all documents of a large corpus they would be gigabytes.
        self._firsts = cached_method(self._document_starts, _OPEN_READERS)
        self.tokens = int(self._starts[-1])
        self.documents = sum(e['documents'] for e in entries)
        self.longest = max((e['longest'] for e in entries), default=0)

    def windows(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Tokens [n, length] int32 that begin at `starts` [n] of the split's stream."""
        if self.tokens * self._dtype.itemsize <= RESIDENT_BYTES:
            every = np.lib.stride_tricks.sliding_window_view(self._resident, length)
            return every[np.asarray(starts)].astype(np.int32)
        return np.stack([self._read(int(s), length) for s in starts]).astype(np.int32)

    def begins(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Of the same windows as `windows`, which tokens are the first ones of their documents:
        bool [n, length]."""
        return np.stack([self._gather(int(s), length, self._begins_in) for s in starts])

    def document_spans(self) -> tuple[np.ndarray, np.ndarray]:
        """(start in the stream, tokens without EOS) of every document, both int64 [documents]."""
        lengths = [self._document_lengths(shard) for shard in range(len(self._stems))]
        whole = np.concatenate([np.zeros(0, np.int64), *lengths])
        return np.cumsum(whole) - whole, whole - 1

    @functools.cached_property
    def _resident(self) -> np.ndarray:
        tokens = self._read(0, self.tokens)
        with self._lock:
            self._readers.clear()
        return tokens

    def _read(self, start: int, length: int) -> np.ndarray:
        return self._gather(start, length, self._read_shard)

    def _gather(
        self, start: int, length: int, read: Callable[[int, int, int], np.ndarray]
    ) -> np.ndarray:
        """Concatenated `read` of (shard, start, stop) over all shards that a window lies in."""
        pieces = []
        shard = int(np.searchsorted(self._starts, start, side='right')) - 1
        end = start + length
        while start < end:
            base = int(self._starts[shard])
            stop = min(end, int(self._starts[shard + 1]))
            pieces.append(read(shard, start - base, stop - base))
            start, shard = stop, shard + 1
        return np.concatenate(pieces) if pieces else np.zeros(0, self._dtype)

    def _read_shard(self, shard: int, start: int, stop: int) -> np.ndarray:
        first, last = start // PAGE, -(-stop // PAGE)
        reader = self._reader(shard)
        try:
            content = b''.join(reader.read(list(range(first, last))))
        except _UNREADABLE as error:
            raise self._damaged(shard, 'array_record', error) from error
        there = min(last * PAGE, self._entries[shard]['tokens']) - first * PAGE
        if len(content) != there * self._dtype.itemsize:
            why = f'{there} tokens take {there * self._dtype.itemsize} bytes, not {len(content)}'
            raise self._damaged(shard, 'array_record', why)
        tokens = np.frombuffer(content, self._dtype)
        return tokens[start - first * PAGE : stop - first * PAGE]

    def _begins_in(self, shard: int, start: int, stop: int) -> np.ndarray:
        firsts = self._firsts(shard)
        inside = firsts[slice(*np.searchsorted(firsts, (start, stop)))]
        begins = np.zeros(stop - start, bool)
        begins[inside - start] = True
        return begins

    def _document_lengths(self, shard: int) -> np.ndarray:
        """Tokens of each document, its EOS included, int64."""
        path, entry = self._path(shard, 'documents.npy'), self._entries[shard]
        if not path.is_file():
            raise self._missing(path)
        try:
            lengths = np.load(path)
        except _UNREADABLE as error:
            raise self._damaged(shard, 'documents.npy', error) from error
        longest = lengths.max(initial=0) - 1
        counts = {'documents': lengths.size, 'tokens': lengths.sum(), 'longest': longest}
        if any(counts[key] != entry[key] for key in counts):
            raise self._damaged(shard, 'documents.npy', 'it has other counts than the metadata say')
        return lengths

    def _document_starts(self, shard: int) -> np.ndarray:
        """First tokens of a shard's documents, counted in the shard, int64."""
        lengths = self._document_lengths(shard)
        return np.cumsum(lengths) - lengths

    def _reader(self, shard: int) -> Any:
        from array_record.python import array_record_module

        with self._lock:
            if shard not in self._readers:
                path = self._path(shard, 'array_record')
                if not path.is_file():
                    raise self._missing(path)
                files.check_present(path)
                path.open('rb').close()  # the library takes a failure to open for an empty file
                try:
                    reader = array_record_module.ArrayRecordReader(str(path))
                    pages = reader.num_records()
                except _UNREADABLE as error:
                    raise self._damaged(shard, 'array_record', error) from error
                there = -(-self._entries[shard]['tokens'] // PAGE)
                if pages != there:
                    why = f'it has {pages} pages, not {there}'
                    raise self._damaged(shard, 'array_record', why)
                self._readers[shard] = reader
                # Each reader that is kept open holds a file.
                most = max(1, min(_OPEN_READERS, files.most_open() // _SHARE_OF_FILES))
                if len(self._readers) > most:
                    self._readers.popitem(last=False)
            self._readers.move_to_end(shard)
            return self._readers[shard]

    def _path(self, shard: int, kind: str) -> pathlib.Path:
        return self._folder / f'{self._stems[shard]}.{kind}'

    def _missing(self, path: pathlib.Path) -> FileNotFoundError:
        return FileNotFoundError(
            f'token shard {path} is missing; remove {self._folder} and prepare it again'
        )

    def _damaged(self, shard: int, kind: str, why: object) -> ValueError:
        return ValueError(
            f'token shard {self._path(shard, kind)} is damaged: {why}; remove {self._folder} and '
            'prepare it again'
        )
