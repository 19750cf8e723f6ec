"""Files that nobody meant to write: each is read rightly or refused by name, and nothing else.

Every case checks three properties. The outcome is a right result, as a plain reading of the
same bytes gives it, or a CheckpointFileError that names the file. No file but those of the
folder is opened. Memory is taken for what the file holds, never for what it announces.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from nope.interop import safetensors
from nope.interop.directory import fingerprint, open_directory
from nope.interop.safetensors import CheckpointFileError

Result = TypeVar('Result')

FLOATS = {'F32': np.float32, 'BF16': ml_dtypes.bfloat16, 'F16': np.float16}
SIZES = {'F32': 4, 'BF16': 2, 'F16': 2, 'I64': 8, 'U8': 1, 'F8_E4M3': 1, 'BOOL': 1}
MOST_BYTES = 1 << 20  # the files have at most a few kilobytes
INDEX = 'model.safetensors.index.json'


def cases(count: int) -> settings:
    """The same cases everywhere: a failure here is a failure there."""
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


class Opened:
    """Paths that this process opens or lists while `watch` runs, apart from what the safetensors
    library opens: a path that was opened here before. Audit hooks cannot be removed; this one
    does nothing at other times."""

    def __init__(self) -> None:
        self._paths: list[str] | None = None
        sys.addaudithook(self._hook)

    @contextlib.contextmanager
    def watch(self) -> Iterator[list[str]]:
        paths = self._paths = []
        try:
            yield paths
        finally:
            self._paths = None

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self._paths is not None and event in ('open', 'os.listdir', 'os.scandir'):
            self._paths.append(str(args[0]))


OPENED = Opened()


def outcome(
    path: pathlib.Path, folder: pathlib.Path, read: Callable[[pathlib.Path], Result]
) -> Result | CheckpointFileError:
    """`read(path)` or the error it raises, with the three properties checked. path: a file of
    `folder`, or the folder itself."""
    result: Result | CheckpointFileError
    tracemalloc.start()
    try:
        with OPENED.watch() as opened:
            result = read(path)
    except CheckpointFileError as error:
        assert str(path) in str(error) and len(str(error)) < 2000
        assert 'tensor ' not in str(error) or any(f'tensor {q}' in str(error) for q in '\'"`')
        result = error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_BYTES
    for name in opened:
        assert name == str(folder) or os.path.dirname(name) == str(folder)
        assert name == str(folder) or os.path.isfile(name)
    return result


def read_file(path: pathlib.Path) -> dict[str, tuple[str, list[int], bytes | None]]:
    """(dtype, shape, bytes) by name; None for the bytes of what is listed and not read."""
    found = {}
    for name, entry in safetensors.read_header(path).entries.items():
        data = None
        if entry.code in FLOATS:
            array = safetensors.read(path, entry)
            assert array.shape == entry.shape and array.dtype == FLOATS[entry.code]
            data = array.tobytes()
        found[name] = (entry.code, list(entry.shape), data)
    return found


def read_plainly(data: bytes) -> dict[str, tuple[str, list[int], bytes | None]]:
    """What `read_file` gives of the bytes of a file that is in order."""
    begin = 8 + int.from_bytes(data[:8], 'little')
    header = json.loads(data[8:begin])
    header.pop('__metadata__', None)
    found = {}
    for name, fields in header.items():
        start, stop = fields['data_offsets']
        part = data[begin + start : begin + stop] if fields['dtype'] in FLOATS else None
        found[name] = (fields['dtype'], fields['shape'], part)
    return found


def assert_read_rightly_or_refused(path: pathlib.Path, data: bytes) -> bool:
    """Whether it was read."""
    path.write_bytes(data)
    found = outcome(path, path.parent, read_file)
    if isinstance(found, CheckpointFileError):
        return False
    assert found == read_plainly(data)
    return True


def framed(header: bytes, data: bytes = b'') -> bytes:
    return len(header).to_bytes(8, 'little') + header + data


# Any JSON value, and texts that are nearly JSON.
NUMBERS = st.one_of(
    st.integers(-2, 12),
    st.sampled_from([2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, 10**4000]),
    st.floats(),
    st.booleans(),
)
SCALARS = st.one_of(NUMBERS, st.none(), st.text(max_size=6))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


TEXTS = st.one_of(
    st.binary(max_size=60),
    VALUES.map(as_json),
    st.dictionaries(st.text(max_size=4), VALUES, max_size=4).map(as_json),
    st.builds(
        lambda part, times, end: part * times + end,
        st.sampled_from([b'[', b'{"a":', b'[[],', b'{"a":1,"b":']),
        st.sampled_from([3, 63, 64, 65, 500, 1000, 2000]),
        st.sampled_from([b'', b'1', b']' * 64, b'}' * 64]),
    ),
    st.sampled_from(
        [b'NaN', b'{"a": NaN}', b'{"a": 1, "a": 1}', b'{"a": "\\ud800"}', b'{}\0', b'9' * 5000]
    ),
)


@pytest.mark.parametrize('framing', ['bytes', 'header'])
def test_any_bytes_as_a_file(tmp_path: pathlib.Path, framing: str) -> None:
    @cases(300)
    @given(TEXTS, st.binary(max_size=12))
    @example(b'', b'')
    def right(text: bytes, data: bytes) -> None:
        content = framed(text, data) if framing == 'header' else text + data
        assert_read_rightly_or_refused(tmp_path / 'x.safetensors', content)

    right()


@st.composite
def edits(draw: Callable[..., Any], most: int) -> list[tuple[str, int, bytes]]:
    """Changes to make to bytes: what kind, at which thousandth of them, with what."""
    kind = st.sampled_from(['flip', 'flip', 'set', 'insert', 'delete', 'cut'])
    place = st.integers(0, 999)
    digits = st.sampled_from([b'0', b'1', b'9', b'-', b'"', b',', b' ', b'[', b'}', b'\xff', b'e'])
    edit = st.tuples(kind, place, st.one_of(digits, st.binary(min_size=1, max_size=3)))
    return draw(st.lists(edit, min_size=1, max_size=most))


def edited(data: bytes, changes: list[tuple[str, int, bytes]], end: int) -> bytes:
    """`changes` made to the first `end` bytes."""
    head, tail = bytearray(data[:end]), data[end:]
    for kind, thousandth, new in changes:
        at = len(head) * thousandth // 1000
        if kind == 'flip' and head:
            head[at] ^= 1 << new[0] % 8
        elif kind == 'set':
            head[at : at + len(new)] = new
        elif kind == 'insert':
            head[at:at] = new
        elif kind == 'delete':
            del head[at : at + len(new)]
        elif kind == 'cut':
            return bytes(head[:at])
    return bytes(head) + tail


def whole_file(path: pathlib.Path) -> bytes:
    shapes = {
        'a.weight': ('F32', (2, 3)),
        'b': ('BF16', (12,)),
        'c': ('F16', ()),
        'd': ('F16', (0,)),
    }
    planned = {name: (np.dtype(FLOATS[code]), shape) for name, (code, shape) in shapes.items()}
    safetensors.write(path, planned, lambda name: np.ones(*reversed(planned[name])), {'of': 'us'})
    return path.read_bytes()


@pytest.mark.parametrize('repaired', [False, True], ids=['as it is', 'with its length put right'])
def test_any_change_to_a_header(tmp_path: pathlib.Path, repaired: bool) -> None:
    whole = whole_file(tmp_path / 'x.safetensors')
    begin = 8 + int.from_bytes(whole[:8], 'little')
    read = []

    @cases(600)
    @given(edits(most=3))
    def right(changes: list[tuple[str, int, bytes]]) -> None:
        data = edited(whole, changes, begin)
        if repaired:
            data = framed(edited(whole[8:begin], changes, begin), whole[begin:])
        read.append(assert_read_rightly_or_refused(tmp_path / 'x.safetensors', data))

    right()
    assert any(read) and not all(read)


@st.composite
def tensors(draw: Callable[..., Any]) -> tuple[dict[str, Any], int]:
    """A header that is in order, its tensors named in any order, and the bytes of its data."""
    header: dict[str, Any] = {}
    position = 0
    for name in draw(st.lists(st.text(max_size=5), max_size=4, unique=True)):
        code = draw(st.sampled_from(sorted(SIZES)))
        shape = draw(st.lists(st.integers(0, 4), max_size=3))
        stop = position + math.prod(shape) * SIZES[code]
        header[name] = {'dtype': code, 'shape': shape, 'data_offsets': [position, stop]}
        position = stop
    return dict(draw(st.permutations(list(header.items())))), position


@st.composite
def headers(draw: Callable[..., Any]) -> tuple[dict[str, Any], int]:
    """A header with up to two fields replaced, and the bytes of its data."""
    header, size = draw(tensors())
    for _ in range(draw(st.integers(0, 2)) if header else 0):
        name = draw(st.sampled_from(sorted(header)))
        field = draw(st.sampled_from(['dtype', 'shape', 'shape', 'data_offsets', 'data_offsets']))
        plausible = {
            'dtype': st.sampled_from([*sorted(SIZES), 'f32', 'F128', '']),
            'shape': st.lists(NUMBERS, max_size=10),
            'data_offsets': st.lists(NUMBERS, min_size=2, max_size=2),
        }[field]
        header[name] = {**header[name], field: draw(st.one_of(plausible, plausible, VALUES))}
    return header, size + draw(st.sampled_from([0, 0, 0, 1, -1])) * (size > 0)


def is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_tensor(fields: dict[str, Any]) -> bool:
    code, shape, offsets = fields['dtype'], fields['shape'], fields['data_offsets']
    lists = isinstance(shape, list) and isinstance(offsets, list)
    return (
        lists
        and isinstance(code, str)
        and code in SIZES
        and len(shape) <= 8
        and len(offsets) == 2
        and all(is_count(n) for n in shape + offsets)
        and math.prod(n for n in shape if n) <= 1 << 59
        and offsets[1] - offsets[0] == math.prod(shape) * SIZES[code]
    )


def is_in_order(header: dict[str, Any], size: int) -> bool:
    """Whether a header is one of `size` bytes of data, decided apart from the code under test."""
    if not all(is_tensor(fields) for fields in header.values()):
        return False
    return fill([fields['data_offsets'] for fields in header.values()], size)


# Of the library: the fields of one tensor are wrong, and it does not say of which.
NAMELESS = (
    'invalid JSON in header',
    'invalid shape, data type, or offset for tensor',
    'overflow computing buffer size',
)


def is_named(name: str, error: str) -> bool:
    return safetensors.shown(name) in error or f'`{repr(name)[1:-1]}`' in error


# Offsets of one tensor are wrong, and leave a gap in front of the other one.
GAP = {
    'a': {'dtype': 'BOOL', 'shape': [1, 4, 4], 'data_offsets': [2**31, 2**31]},
    'b': {'dtype': 'BOOL', 'shape': [], 'data_offsets': [16, 17]},
}


def fill(ranges: list[Any], size: int) -> bool:
    """Whether ranges of bytes lie one behind the other, from 0 to `size`."""
    if not all(isinstance(pair, list) and all(map(is_count, pair)) for pair in ranges):
        return False
    joints = [0, *(joint for pair in sorted(ranges) for joint in pair), size]
    return len(joints) == 2 * len(ranges) + 2 and all(
        a == b for a, b in zip(joints[::2], joints[1::2], strict=True)
    )


def test_any_header(tmp_path: pathlib.Path) -> None:
    """Accepted exactly if it is in order. The error names one of its tensors, and the one whose
    own fields are wrong where the offsets of all fit each other; the library does not where it is
    the fields."""
    path, counts = tmp_path / 'x.safetensors', {True: 0, False: 0}

    @cases(800)
    @given(headers())
    @example(({'a': {'dtype': 'F32', 'shape': [0, 2**62], 'data_offsets': [0, 0]}}, 0))
    @example(({'a': {'dtype': 'F32', 'shape': [2**62], 'data_offsets': [0, 2**64]}}, 0))
    @example(({'a': {'dtype': 'F32', 'shape': [2**40], 'data_offsets': [0, 2**42]}}, 4))
    @example((GAP, 17))
    @example((GAP, 16))
    def right(case: tuple[dict[str, Any], int]) -> None:
        header, size = case
        path.write_bytes(framed(as_json(header), bytes(size)))
        found = outcome(path, tmp_path, read_file)
        counts[isinstance(found, dict)] += 1
        assert isinstance(found, dict) == is_in_order(header, size)
        if isinstance(found, dict):
            assert found == read_plainly(path.read_bytes())
        elif header:
            wrong = [name for name, fields in header.items() if not is_tensor(fields)]
            named = {name for name in header if is_named(name, str(found))}
            nameless = any(words in str(found) for words in NAMELESS)
            # Offsets that do not fit each other may be blamed on any tensor that they concern.
            whole = fill([fields['data_offsets'] for fields in header.values()], size)
            assert named & set(wrong if whole else header) or (nameless and wrong)

    right()
    assert min(counts.values()) > 100, counts


TRUE_MAP = {'a': 'a.safetensors', 'b': 'a.safetensors', 'c': 'c.safetensors'}
HOSTILE = [
    '../outside.safetensors',
    '..',
    '.',
    '',
    '/etc/passwd',
    '//outside.safetensors',
    '..\\outside.safetensors',
    'sub/inner.safetensors',
    'sub/../a.safetensors',
    './a.safetensors',
    'a.safetensors/',
    'a.safetensors\0',
    '\0.safetensors',
    'a\0b.safetensors',
    'sub',
    'folder.safetensors',
    'pipe.safetensors',
    'nowhere.safetensors',
    'A.SAFETENSORS',
    'ａ.safetensors',  # noqa: RUF001 (a wide a)
    'a.safetensors\u202e',
    '\ud800.safetensors',
    '\udcff.safetensors',
    '~/.safetensors',
    '$HOME.safetensors',
    '*.safetensors',
    'file:a.safetensors',
    'x' * 5000 + '.safetensors',
    'config.json',
    'pickle.bin',
]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A model of two files, among things that must not be opened, some of which would hang."""
    inside = tmp_path / 'model'
    (inside / 'sub').mkdir(parents=True)
    (inside / 'folder.safetensors').mkdir()
    os.mkfifo(inside / 'pipe.safetensors')
    (inside / 'nowhere.safetensors').symlink_to(tmp_path / 'gone')
    (inside / 'config.json').write_text('{"layers": 2}')
    (inside / 'pickle.bin').write_bytes(b'\x80\x04.')
    for path, names in {
        inside / 'a.safetensors': 'ab',
        inside / 'c.safetensors': 'c',
        inside / 'sub' / 'inner.safetensors': 'c',
        tmp_path / 'outside.safetensors': 'c',
    }.items():
        shapes = {name: (np.dtype(np.float32), (2,)) for name in names}
        safetensors.write(path, shapes, lambda name: np.ones(2, np.float32), {})
    (inside / INDEX).write_text(json.dumps({'weight_map': TRUE_MAP}))
    return inside


def read_folder(path: pathlib.Path) -> tuple[Any, dict[str, str]]:
    """The config, and the name of the file of each tensor; reads all of them."""
    directory = open_directory(path)
    for name in directory.tensors:
        assert list(directory.read(name)) == [1, 1]
    assert len(fingerprint(directory)) == 16
    return directory.config, {name: found.file.name for name, found in directory.tensors.items()}


def weight_maps(folder: pathlib.Path) -> st.SearchStrategy[Any]:
    hostile = st.sampled_from([*HOSTILE, str(folder.parent / 'outside.safetensors')])
    files = st.one_of(st.sampled_from([*TRUE_MAP.values()]), hostile, hostile, st.text(), VALUES)
    names = st.one_of(st.sampled_from([*TRUE_MAP]), st.text(max_size=4))
    changed = st.dictionaries(names, files, max_size=2)
    return st.one_of(
        changed.map(lambda change: {**TRUE_MAP, **change}),
        st.dictionaries(st.sampled_from([*TRUE_MAP]), st.sampled_from([*TRUE_MAP.values()])),
        st.dictionaries(names, files, max_size=4),
        VALUES,
    )


def is_true(weight_map: Any) -> bool:
    """Whether it says of whole files what they hold."""
    if not isinstance(weight_map, dict):
        return False
    files = [file for file in weight_map.values() if isinstance(file, str)]
    return weight_map == {name: file for name, file in TRUE_MAP.items() if file in files}


def test_any_index(folder: pathlib.Path) -> None:
    index, counts = folder / INDEX, {True: 0, False: 0}

    @cases(500)
    @given(weight_maps(folder), st.none() | VALUES)
    @example(TRUE_MAP, None)
    def right(weight_map: Any, metadata: Any) -> None:
        index.write_bytes(as_json({'metadata': metadata, 'weight_map': weight_map}))
        found = outcome(folder, folder, read_folder)
        counts[isinstance(found, tuple)] += 1
        if isinstance(found, tuple):
            assert found == ({'layers': 2}, weight_map)
        else:
            assert not is_true(weight_map)

    right()
    assert min(counts.values()) > 20, counts


@pytest.mark.parametrize('name', HOSTILE)
def test_each_hostile_name(folder: pathlib.Path, name: str) -> None:
    (folder / INDEX).write_text(json.dumps({'weight_map': {**TRUE_MAP, 'c': name}}))
    found = outcome(folder, folder, read_folder)
    assert isinstance(found, CheckpointFileError)
    assert "tensor 'c'" in str(found) or f'{name}: ' in str(found)


@pytest.mark.parametrize('name', ['config.json', INDEX, 'nope_export.json'])
def test_any_bytes_as_a_json_file(folder: pathlib.Path, name: str) -> None:
    whole = b'{"checksums": {}, "weight_map": %s, "layers": [1e3, null]}' % as_json(TRUE_MAP)
    changed = edits(most=2).map(lambda changes: edited(whole, changes, len(whole)))

    @cases(250)
    @given(st.one_of(TEXTS, changed))
    @example(whole)
    def right(data: bytes) -> None:
        (folder / name).write_bytes(data)
        found = outcome(folder, folder, read_folder)
        if isinstance(found, tuple):
            value = json.loads(data.decode())
            assert isinstance(value, dict)
            assert name != 'config.json' or as_json(found[0]) == as_json(value)
            assert name != INDEX or found[1] == value['weight_map']
        else:
            assert str(folder / name) in str(found) or name == INDEX

    right()
