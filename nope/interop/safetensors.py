"""The safetensors format, read and written a tensor at a time with numpy alone.

A file is a little endian uint64 n, then n bytes of JSON (spaces may end it), then the data:

    {"__metadata__": {"text": "text"},
     "a.weight": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...}

Offsets count from the end of the header; the tensors cover the data without gap or overlap.
Nothing in a file is believed before it is checked: no size of a header or a tensor asks for
memory that the file itself does not fill.
"""

from __future__ import annotations

import collections
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

import ml_dtypes
import numpy as np

from nope.runtime import files

MAX_HEADER_BYTES = 100_000_000  # the format's own limit
MAX_DIMENSIONS = 8
MAX_NESTING = 64
READABLE = ('F32', 'BF16', 'F16')

_METADATA = '__metadata__'
_FIELDS = {'dtype', 'shape', 'data_offsets'}
_MAX_ELEMENTS = 1 << 59  # numpy counts the bytes of an array in an int64, zeros in its shape apart
_CHUNK = 1 << 20

_DTYPES: Mapping[str, np.dtype] = {
    'F32': np.dtype('<f4'),
    'BF16': np.dtype(ml_dtypes.bfloat16),
    'F16': np.dtype('<f2'),
    'F64': np.dtype('<f8'),
    'C64': np.dtype('<c8'),
    'BOOL': np.dtype('?'),
    'U8': np.dtype('u1'),
    'I8': np.dtype('i1'),
    'U16': np.dtype('<u2'),
    'I16': np.dtype('<i2'),
    'U32': np.dtype('<u4'),
    'I32': np.dtype('<i4'),
    'U64': np.dtype('<u8'),
    'I64': np.dtype('<i8'),
    'F8_E4M3': np.dtype(ml_dtypes.float8_e4m3fn),
    'F8_E5M2': np.dtype(ml_dtypes.float8_e5m2),
    'F8_E4M3FNUZ': np.dtype(ml_dtypes.float8_e4m3fnuz),
    'F8_E5M2FNUZ': np.dtype(ml_dtypes.float8_e5m2fnuz),
    'F8_E8M0': np.dtype(ml_dtypes.float8_e8m0fnu),
    'F6_E2M3': np.dtype(ml_dtypes.float6_e2m3fn),
    'F6_E3M2': np.dtype(ml_dtypes.float6_e3m2fn),
    'F4': np.dtype(ml_dtypes.float4_e2m1fn),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_PACKED_BITS = {'F6_E2M3': 6, 'F6_E3M2': 6, 'F4': 4}


class CheckpointFileError(ValueError):
    """A file of weights that is damaged, not to be trusted, or of a kind that is not read."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A tensor in a file: its element type, its shape and its bytes [start, stop) of the file.

    `dtype` names the type of one element. Types below a byte are packed in the file and have a
    byte each in numpy; none of them is in `READABLE`.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def code(self) -> str:
        """The format's own name of the dtype, such as 'BF16'."""
        return _CODES[self.dtype]


@dataclasses.dataclass(frozen=True)
class Header:
    """The tensors of a file by name, in the order of their bytes, and its free text."""

    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]


def read_header(path: pathlib.Path) -> Header:
    """The header of a safetensors file, every size in it checked against the file's.

    CheckpointFileError where the path is no regular file or cannot be read, where the header is
    not what the format says, and where the tensors do not cover the data exactly; a file cut
    short is reported with the first tensor that is not whole.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data_start = 8 + _header_length(file, size, path)
        fields = json_object(file.read(data_start - 8), f'{path}: header')
    metadata = _metadata(fields.pop(_METADATA, {}), path)
    entries = [_entry(name, value, data_start, path) for name, value in fields.items()]
    entries.sort(key=lambda entry: (entry.start, entry.stop))
    _check_layout(entries, data_start, size, path)
    return Header({entry.name: entry for entry in entries}, metadata)


def read(path: pathlib.Path, entry: Entry) -> np.ndarray:
    """The values of one tensor, of the entry's dtype (float32, bfloat16, float16) and shape.

    Reads its bytes and no others. CheckpointFileError for another dtype, and where the file has
    become shorter since its header was read.
    """
    if entry.code not in READABLE:
        raise CheckpointFileError(
            f'{path}: tensor {shown(entry.name)} has dtype {entry.code}; accepted are '
            f'{", ".join(READABLE)}'
        )
    return read_bytes(path, entry, entry.start, entry.stop).view(entry.dtype).reshape(entry.shape)


def read_bytes(path: pathlib.Path, entry: Entry, start: int, stop: int) -> np.ndarray:
    """Bytes [start, stop) of the file, a part of the entry's, as uint8 [stop - start].

    CheckpointFileError where the file has become shorter since its header was read.
    """
    with open_regular(path) as file:
        _check_whole(entry, os.fstat(file.fileno()).st_size, path)
        data = np.empty(stop - start, np.uint8)
        file.seek(start)
        filled = 0
        while filled < len(data):
            count = file.readinto(data[filled:].data)
            if not count:
                _check_whole(entry, start + filled, path)
            filled += count
    return data


def check_finite(name: str, array: np.ndarray, path: pathlib.Path) -> None:
    """CheckpointFileError where a value of a float array is infinite or not a number; it names
    the tensor, how many such values there are, and the index of the first.

    Needs a few MiB beside the array, whatever its size.
    """
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    wrong, first = 0, 0
    for start in range(0, array.size, _CHUNK):
        finite = np.isfinite(flat[start : start + _CHUNK])
        if not finite.all():
            first = first if wrong else start + int(finite.argmin())
            wrong += int(np.count_nonzero(~finite))
    if wrong:
        index = tuple(int(i) for i in np.unravel_index(first, array.shape))
        raise CheckpointFileError(
            f'{path}: tensor {shown(name)} has values that are not finite: {wrong} of '
            f'{array.size}, the first {flat[first]} at index {index}'
        )


def write(
    path: pathlib.Path,
    shapes: Mapping[str, tuple[np.dtype, tuple[int, ...]]],
    arrays: Callable[[str], np.ndarray],
    metadata: Mapping[str, str],
) -> dict[str, str]:
    """Writes a file that is either absent or whole; makes its folder.

    shapes: the dtype (float32, bfloat16 or float16) and shape of every tensor, in the order of
    the file. arrays: called once for each name, in that order; one array is held at a time.
    Returns the `digest` of every tensor by name. CheckpointFileError for another dtype, and
    where an array is not what `shapes` says; no file is left then, and an older one stays.
    """
    header = _encoded_header(path, shapes, metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = files.unfinished(path)
    try:
        with partial.open('wb') as file:
            file.write(header)
            digests = {}
            for name, (dtype, shape) in shapes.items():
                data = _planned_bytes(name, arrays(name), dtype, shape, path)
                digests[name] = hashlib.sha256(data).hexdigest()
                file.write(data)
                del data
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return digests


def digest(array: np.ndarray) -> str:
    """SHA-256, in 64 hex digits, of an array's bytes in row-major order, as a file holds them."""
    return hashlib.sha256(_row_major_bytes(array)).hexdigest()


@contextlib.contextmanager
def open_regular(path: pathlib.Path) -> Iterator[io.BufferedReader]:
    """Opens a regular file, or a link to one, for reading bytes.

    CheckpointFileError where it is anything else (a pipe or device is never opened), and where
    it cannot be opened or read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise CheckpointFileError(f'{path}: not a regular file')
        with open(path, 'rb') as file:
            yield file
    except OSError as error:
        raise CheckpointFileError(f'{path}: cannot be read: {error.strerror or error}') from error


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object that `data` is, in UTF-8; `where` begins the error's message.

    CheckpointFileError for anything else, a key that an object has twice, and values nested
    more than `MAX_NESTING` deep.
    """
    try:
        value = json.loads(data.decode(), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise CheckpointFileError(f'{where}: not a JSON object in UTF-8: {error}') from error
    if not isinstance(value, dict):
        raise CheckpointFileError(f'{where}: not a JSON object but {shown(value)}')
    if _is_deeper(value, MAX_NESTING):
        raise CheckpointFileError(f'{where}: nested more than {MAX_NESTING} deep')
    return value


def shown(value: object) -> str:
    """`repr` for an error's message: of bounded length and depth, whatever the value."""
    return _REPR.repr(value)


_REPR = reprlib.Repr()
_REPR.maxstring = 240
_REPR.maxlist = MAX_DIMENSIONS + 1


def _header_length(file: io.BufferedReader, size: int, path: pathlib.Path) -> int:
    if size < 8:
        raise CheckpointFileError(
            f'{path}: the file has {size} bytes; a safetensors file has at least 8'
        )
    length = int.from_bytes(file.read(8), 'little')
    most = min(size - 8, MAX_HEADER_BYTES)
    if not 0 < length <= most:
        raise CheckpointFileError(
            f'{path}: not a safetensors file, or cut in its header: its first 8 bytes announce a '
            f'header of {length} bytes; accepted are 1 to {most} in a file of {size}'
        )
    return length


def _metadata(value: Any, path: pathlib.Path) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise CheckpointFileError(
            f'{path}: {_METADATA} is {shown(value)}; accepted is an object of texts'
        )
    return value


def _entry(name: str, value: Any, data_start: int, path: pathlib.Path) -> Entry:
    where = f'{path}: tensor {shown(name)}'
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        raise CheckpointFileError(
            f'{where} is described by {shown(value)}; accepted is an object of exactly dtype, '
            'shape and data_offsets'
        )
    code, shape, offsets = value['dtype'], value['shape'], value['data_offsets']
    if not isinstance(code, str) or code not in _DTYPES:
        raise CheckpointFileError(
            f'{where} has dtype {shown(code)}; accepted are {", ".join(_DTYPES)}'
        )
    if not _are_counts(shape) or len(shape) > MAX_DIMENSIONS:
        raise CheckpointFileError(
            f'{where} has shape {shown(shape)}; accepted are at most {MAX_DIMENSIONS} integers, '
            'none of them negative'
        )
    if math.prod(filter(None, shape)) > _MAX_ELEMENTS:
        raise CheckpointFileError(f'{where} has shape {shown(shape)}, more than an array can have')
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointFileError(
            f'{where} has data_offsets {shown(offsets)}; accepted are two integers, the second '
            'not below the first'
        )
    dtype = _DTYPES[code]
    bits = math.prod(shape) * _PACKED_BITS.get(code, 8 * dtype.itemsize)
    if bits != 8 * (offsets[1] - offsets[0]):
        raise CheckpointFileError(
            f'{where} has data_offsets {shown(offsets)}, which are not the {bits / 8:.15g} bytes '
            f'of {code} {shown(shape)}'
        )
    return Entry(name, dtype, tuple(shape), data_start + offsets[0], data_start + offsets[1])


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)


def _check_layout(entries: list[Entry], position: int, size: int, path: pathlib.Path) -> None:
    """entries: in the order of their bytes; position: where the data begin, the header's end."""
    for entry in entries:
        if entry.start != position:
            fault = 'overlap those of' if entry.start < position else 'leave a gap after'
            raise CheckpointFileError(
                f'{path}: the bytes of tensor {shown(entry.name)} begin at {shown(entry.start)} of '
                f'the file and {fault} the tensor before it or the header, which end at {position}'
            )
        _check_whole(entry, size, path)
        position = entry.stop
    if position != size:
        after = f'its last tensor, {shown(entries[-1].name)},' if entries else 'its header'
        raise CheckpointFileError(
            f'{path}: {after} ends at byte {position}, the file has {size}: too long'
        )


def _check_whole(entry: Entry, size: int, path: pathlib.Path) -> None:
    if entry.stop > size:
        raise CheckpointFileError(
            f'{path}: cut short: tensor {shown(entry.name)} ends at byte {shown(entry.stop)}, '
            f'the file has {size}'
        )


def _encoded_header(
    path: pathlib.Path,
    shapes: Mapping[str, tuple[np.dtype, tuple[int, ...]]],
    metadata: Mapping[str, str],
) -> bytes:
    fields: dict[str, Any] = {_METADATA: _metadata(dict(metadata), path)} if metadata else {}
    stop = 0
    for name, (dtype, shape) in shapes.items():
        code = _CODES.get(np.dtype(dtype))
        if code not in READABLE or name == _METADATA:
            raise CheckpointFileError(
                f'{path}: tensor {shown(name)} of dtype {dtype} cannot be written; accepted are '
                f'{", ".join(READABLE)} under any name but {_METADATA}'
            )
        start, stop = stop, stop + math.prod(shape) * np.dtype(dtype).itemsize
        fields[name] = {'dtype': code, 'shape': list(shape), 'data_offsets': [start, stop]}
    text = json.dumps(fields, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES:
        raise CheckpointFileError(
            f'{path}: a header of {len(text)} bytes; accepted are at most {MAX_HEADER_BYTES}'
        )
    return len(text).to_bytes(8, 'little') + text


def _planned_bytes(
    name: str, array: np.ndarray, dtype: np.dtype, shape: tuple[int, ...], path: pathlib.Path
) -> memoryview:
    if array.dtype != dtype or array.shape != tuple(shape):
        raise CheckpointFileError(
            f'{path}: tensor {shown(name)} is {array.dtype} {list(array.shape)}; accepted is '
            f'{np.dtype(dtype)} {list(shape)}, which the header says'
        )
    return _row_major_bytes(array)


def _row_major_bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        (key, times) = collections.Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f'an object has the key {shown(key)} {times} times')
    return value


def _is_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [child for item in level for child in _children(item)]
    return bool(level)


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
