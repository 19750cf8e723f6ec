"""Plain and packed files as streams of their content, refused where they are damaged.

A packed file that ends early, has bytes behind its end, or fails a check of its own is refused.
Three kinds of damage leave no trace. A file may be cut between two of its streams. gzip pads with
zero bytes behind the last member, which count as no content. Zstandard frames without a content
checksum hide changed bytes (the `zstd` command writes checksums, libraries often do not).
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import pathlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from nope.data.sources import suffixes
from nope.runtime import files

_READ_BYTES = 1 << 20
_MAX_WINDOW = 1 << 31  # of a Zstandard frame: the format's, as `zstd --long=31` writes
_STEP_BYTES = 1 << 10  # packed bytes unpacked at a time, to 32 MiB at most by zstd


def is_packed(path: pathlib.PurePath) -> bool:
    return suffixes.ends_in(path, suffixes.PACKINGS)


@contextlib.contextmanager
def opened(name: str, path: pathlib.Path) -> Iterator[BinaryIO]:
    """The unpacked content of a file of text, as UTF-8 (`files.utf8`). name: of the path's field in
    messages.

    ValueError naming the file, from any read, where it is damaged.
    """
    damage = (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError, _DamagedStream)
    try:
        if is_packed(path) and path.stat().st_size == 0:
            raise EOFError('it is empty')
        with _open(path) as file:
            yield files.utf8(file, path)
    except files.ContentError as error:
        raise ValueError(f'{name}: {error}') from error
    except damage as error:
        raise ValueError(f'{name}: {path} is damaged: {error}') from error


def size(name: str, path: pathlib.Path) -> int:
    """Bytes of what `opened` gives of a plain file."""
    with opened(name, path) as file:
        return file.seek(0, io.SEEK_END)


def _open(path: pathlib.Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == '.gz':
        return gzip.open(path, 'rb')
    file = path.open('rb', _READ_BYTES)
    if suffix == '.bz2':
        return _unpacked(file, bz2.BZ2Decompressor, OSError)
    if suffix == '.xz':
        return _unpacked(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), lzma.LZMAError)
    if suffix in ('.zst', '.zstd'):
        import zstandard

        whole = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        return _unpacked(file, whole.decompressobj, zstandard.ZstdError)
    return file


def _unpacked(file: BinaryIO, start: Callable[[], Any], failure: type[Exception]) -> BinaryIO:
    return io.BufferedReader(_Streams(file, start, failure), _READ_BYTES)


class _DamagedStream(Exception):
    """Damage of a packed stream; the text says which."""


class _Streams(io.RawIOBase):
    """The content of a file of one or more packed streams (Zstandard calls them frames).

    They are unpacked one by one: libraries' own readers end silently where the file does, even
    inside a frame or before bytes that are no stream.

    start: makes the decompressor of a stream. failure: what it raises for a damaged one.
    """

    def __init__(self, file: BinaryIO, start: Callable[[], Any], failure: type[Exception]) -> None:
        self._file = file
        self._packed = b''  # read, of the streams to come
        self._content = memoryview(b'')  # unpacked and not asked for yet
        self._start, self._failure = start, failure
        self._stream: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._content:
            if not self._unpack():
                return 0
        size = min(len(buffer), len(self._content))
        buffer[:size] = self._content[:size]
        self._content = self._content[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()

    def _unpack(self) -> bool:
        """Unpacks the next bytes; False at the end of the file."""
        # bz2 and xz stop at a limit, and hold what they have not unpacked yet.
        held = not getattr(self._stream, 'needs_input', True)
        packed = b'' if held else self._packed or self._file.read(_STEP_BYTES)
        self._packed = b''
        if not packed and not held:
            if self._stream is not None:
                raise _DamagedStream('it ends in the middle of a packed stream')
            return False
        self._stream = self._stream or self._start()
        most = (_READ_BYTES,) if hasattr(self._stream, 'needs_input') else ()
        try:
            self._content = memoryview(self._stream.decompress(packed, *most))
        except self._failure as error:
            raise _DamagedStream(error) from error
        if self._stream.eof:
            self._packed = self._stream.unused_data
            self._stream = None
        return True
