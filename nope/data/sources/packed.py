"""Plain, gzip and Zstandard files as streams of their content, refused where they are damaged.

A packed file that ends early, has bytes behind its end, or fails a check of its own is refused.
Three kinds of damage leave nothing to see: a file cut between two gzip members or Zstandard frames,
gzip's padding of zero bytes behind the last member, which counts as no content, and changed bytes
within Zstandard frames that were written without a content checksum (the `zstd` command writes
one, libraries often do not).
"""

from __future__ import annotations

import contextlib
import gzip
import io
import pathlib
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

SUFFIXES = ('.gz', '.zst')

_READ_BYTES = 1 << 20
_STEP_BYTES = 1 << 10  # packed bytes unpacked at a time, to 32 MiB at most


def is_packed(path: pathlib.PurePath) -> bool:
    return path.suffix in SUFFIXES


@contextlib.contextmanager
def opened(name: str, path: pathlib.Path) -> Iterator[BinaryIO]:
    """The unpacked content of a file. name: of the path's field in messages.

    ValueError naming the file, from any read, where it is damaged.
    """
    try:
        if is_packed(path) and path.stat().st_size == 0:
            raise EOFError('it is empty')
        with _open(path) as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error, _DamagedFrame) as error:
        raise ValueError(f'{name}: {path} is damaged: {error}') from error


def _open(path: pathlib.Path) -> BinaryIO:
    if path.suffix == '.gz':
        return gzip.open(path, 'rb')  # type: ignore[return-value]
    file = path.open('rb', _READ_BYTES)
    return io.BufferedReader(_Frames(file), _READ_BYTES) if path.suffix == '.zst' else file


class _DamagedFrame(Exception):
    """Damage of a Zstandard frame; the text says which."""


class _Frames(io.RawIOBase):
    """The content of a file of Zstandard frames.

    Frames are unpacked one by one: the library's own stream across frames ends without a word
    where its file does, also in the middle of a frame.
    """

    def __init__(self, file: BinaryIO) -> None:
        import zstandard

        self._file = file
        self._packed = b''  # read, of the frames to come
        self._content = memoryview(b'')  # unpacked and not asked for yet
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame: Any = None
        self._error = zstandard.ZstdError

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
        packed = self._packed or self._file.read(_STEP_BYTES)
        self._packed = b''
        if not packed:
            if self._frame is not None:
                raise _DamagedFrame('it ends in the middle of a Zstandard frame')
            return False
        self._frame = self._frame or self._decompressor.decompressobj()
        try:
            self._content = memoryview(self._frame.decompress(packed))
        except self._error as error:
            raise _DamagedFrame(error) from error
        if self._frame.eof:
            self._packed = self._frame.unused_data
            self._frame = None
        return True
