"""Safetensors files: a reader around the `safetensors` library, a streaming writer.

A file is a little endian uint64 n, then n bytes of JSON (spaces may end it), then the data:

    {"__metadata__": {"text": "text"},
     "a.weight": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...}

Offsets count from the end of the header; the tensors cover the data without gap or overlap. The
library checks that, and reads the values. It does not name the file in its errors, and writes only
what is in memory all at once: the errors and the writer are here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import math
import os
import pathlib
import reprlib
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes  # with it numpy, and so the library, knows bfloat16
import numpy as np
from safetensors import SafetensorError, safe_open

from nope.runtime import files
from nope.runtime.ahead import one_ahead

_CHUNK = 1 << 17  # values that stay in the cache

_DTYPES: Mapping[str, np.dtype] = {
    'F32': np.dtype('<f4'),
    'BF16': np.dtype(ml_dtypes.bfloat16),
    'F16': np.dtype('<f2'),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}


class CheckpointFileError(ValueError):
    """A file of weights that is damaged, not to be trusted, or of a kind that is not read."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A tensor in a file: the format's name of its dtype ('BF16'), its shape, and its bytes
    [start, stop) of the file."""

    name: str
    code: str
    shape: tuple[int, ...]
    start: int
    stop: int


def read_header(path: pathlib.Path) -> dict[str, Entry]:
    """The tensors of a safetensors file by name, in the order of their bytes.

    CheckpointFileError for a path that is no readable regular file, and for a file that the library
    refuses: its header is not the format's, or its tensors do not cover the data exactly.
    """
    with _opened(path) as (file, _):
        length = int.from_bytes(file.read(8), 'little')
        fields = json_object(file.read(length), f'{path}: header')
    fields.pop('__metadata__', None)
    found = []
    for name, value in fields.items():
        start, stop = (8 + length + offset for offset in value['data_offsets'])
        found.append(Entry(name, value['dtype'], tuple(value['shape']), start, stop))
    return {entry.name: entry for entry in sorted(found, key=lambda e: (e.start, e.stop))}


def read(path: pathlib.Path, entry: Entry) -> np.ndarray:
    """The values of one tensor, of the entry's dtype (float32, bfloat16, float16) and shape.

    Reads its bytes and the header. CheckpointFileError for another dtype, and where the file has
    become shorter, or another one, since its header was read.
    """
    dtype = dtype_of(path, entry)
    with _opened(path) as (_, tensors):
        array = tensors.get_tensor(entry.name)
    if array.dtype != dtype or array.shape != entry.shape:
        raise CheckpointFileError(
            f'{path}: tensor {shown(entry.name)} is not what the header said: the file has changed'
        )
    return array


def dtype_of(path: pathlib.Path, entry: Entry) -> np.dtype:
    """float32, bfloat16 or float16, as the header says; CheckpointFileError for another dtype."""
    if entry.code not in _DTYPES:
        raise CheckpointFileError(
            f'{path}: tensor {shown(entry.name)} has dtype {entry.code}; accepted are '
            f'{", ".join(_DTYPES)}'
        )
    return _DTYPES[entry.code]


def read_bytes(path: pathlib.Path, entry: Entry, start: int, stop: int) -> bytes:
    """Bytes [start, stop) of the file, a part of the entry's.

    CheckpointFileError where the file has become shorter since its header was read.
    """
    with open_regular(path) as file:
        file.seek(start)
        data = file.read(stop - start)
    if len(data) < stop - start:
        raise CheckpointFileError(
            f'{path}: cut short: tensor {shown(entry.name)} ends at byte {entry.stop}'
        )
    return data


def check_finite(name: str, array: np.ndarray, path: pathlib.Path) -> None:
    """CheckpointFileError where a value of a float array is infinite or not a number; it names
    the tensor, how many such values there are, and the index of the first.

    Needs less than a MiB beside the array, whatever its size.
    """
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    wrong, first = 0, 0
    for start in range(0, array.size, _CHUNK):
        chunk = flat[start : start + _CHUNK]
        if _all_finite(chunk):
            continue
        with np.errstate(invalid='ignore'):  # ml_dtypes warns of values that are not
            finite = np.isfinite(chunk)
        first = first if wrong else start + int(finite.argmin())
        wrong += int(np.count_nonzero(~finite))
    if wrong:
        index = tuple(int(i) for i in np.unravel_index(first, array.shape))
        raise CheckpointFileError(
            f'{path}: tensor {shown(name)} has values that are not finite: {wrong} of '
            f'{array.size}, the first {flat[first]} at index {index}'
        )


def _all_finite(chunk: np.ndarray) -> bool:
    """Whether no value of a chunk is infinite or not a number; of half precision by the bits of
    exponents, which numpy takes in vectors, and bfloat16 value by value."""
    if chunk.dtype.itemsize != 2:
        return bool(np.isfinite(chunk).all())
    infinite = np.array(np.inf, chunk.dtype).view(np.uint16)
    return bool((chunk.view(np.uint16) & 0x7FFF).max() < infinite)


def write(
    path: pathlib.Path,
    shapes: Mapping[str, tuple[np.dtype, tuple[int, ...]]],
    arrays: Callable[[str], np.ndarray],
    metadata: Mapping[str, str],
) -> dict[str, str]:
    """Writes a file that is either absent or whole; makes its folder.

    shapes: the dtype (float32, bfloat16 or float16) and shape of every tensor, in the order of
    the file. arrays: called once for each name, in that order and in a thread; two arrays are held
    at a time. Returns the `digest` of every tensor by name. An error leaves no file, and an older
    one stays.
    """
    fields: dict[str, Any] = {'__metadata__': dict(metadata)}
    stop = 0
    for name, (dtype, shape) in shapes.items():
        start, stop = stop, stop + math.prod(shape) * dtype.itemsize
        offsets = {'data_offsets': [start, stop]}
        fields[name] = {'dtype': _CODES[dtype], 'shape': list(shape), **offsets}
    header = json.dumps(fields, separators=(',', ':')).encode()
    header += b' ' * (-len(header) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = files.unfinished(path)
    digests = {}
    try:
        with partial.open('wb') as file:
            file.write(len(header).to_bytes(8, 'little') + header)
            for name, array in one_ahead(arrays, [*shapes]):
                assert (array.dtype, array.shape) == shapes[name], name
                digests[name] = digest(array)
                file.write(_row_major_bytes(array))
                del array
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return digests


def digest(array: np.ndarray) -> str:
    """SHA-256, in 64 hex digits, of an array's bytes in row-major order, as a file holds them."""
    return hashlib.sha256(_row_major_bytes(array)).hexdigest()


def _row_major_bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


@contextlib.contextmanager
def open_regular(path: pathlib.Path) -> Iterator[io.BufferedReader]:
    """Opens a regular file, or a link to one, for reading bytes.

    CheckpointFileError where it is anything else (a pipe or device is never opened), where Git LFS
    left a pointer, and where it cannot be opened or read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise CheckpointFileError(f'{path}: not a regular file')
        try:
            files.check_present(path)
        except files.ContentError as error:
            raise CheckpointFileError(str(error)) from error
        with open(path, 'rb') as file:
            yield file
    except OSError as error:
        raise CheckpointFileError(f'{path}: cannot be read: {error.strerror or error}') from error


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object that `data` is, in UTF-8; `where` begins the error's message.

    CheckpointFileError for anything else.
    """
    try:
        value = files.parse_json(data.decode())
    except ValueError as error:
        raise CheckpointFileError(f'{where}: not a JSON object in UTF-8: {error}') from error
    if not isinstance(value, dict):
        raise CheckpointFileError(f'{where}: not a JSON object but {shown(value)}')
    return value


def shown(value: object) -> str:
    """`repr` for an error's message: of bounded length and depth, whatever the value."""
    return _REPR.repr(value)


_REPR = reprlib.Repr()
_REPR.maxstring = 240
_REPR.maxlist = 9


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[tuple[io.BufferedReader, safe_open]]:
    """A regular file that the library accepts: as bytes, and as the library's reader of it."""
    with open_regular(path) as file:
        try:
            # Not through a memory map: where a file is cut under one, the process is killed.
            with safe_open(path, 'np', backend='pread') as tensors:
                yield file, tensors
        except SafetensorError as error:
            reason = str(error).removeprefix('Error while deserializing header: ')
            raise CheckpointFileError(
                f'{path}: not a whole safetensors file, of {os.fstat(file.fileno()).st_size} '
                f'bytes: {shown(reason)}'
            ) from error
