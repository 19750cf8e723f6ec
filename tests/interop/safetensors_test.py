"""The format: what is written is read back, bit for bit; what is damaged is named."""

from __future__ import annotations

import json
import os
import pathlib
import tracemalloc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import deserialize, safe_open
from safetensors.numpy import save_file

from nope.interop import safetensors
from nope.interop.safetensors import CheckpointFileError

FLOATS = [np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)]
SHAPES = [(), (0,), (3, 0, 2), (1,), (5,), (2, 3), (2, 1, 3, 2)]


def random_bits(dtype: np.dtype, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    data = np.random.default_rng(seed).bytes(int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape)


def save(path: pathlib.Path, arrays: dict[str, np.ndarray], **metadata: str) -> dict[str, str]:
    shapes = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    return safetensors.write(path, shapes, arrays.__getitem__, metadata)


def load(path: pathlib.Path) -> dict[str, np.ndarray]:
    entries = safetensors.read_header(path)
    return {name: safetensors.read(path, entry) for name, entry in entries.items()}


def framed(header: bytes, data: bytes = b'') -> bytes:
    return len(header).to_bytes(8, 'little') + header + data


def entry(dtype: Any, shape: Any, start: Any, stop: Any) -> dict[str, Any]:
    return {'dtype': dtype, 'shape': shape, 'data_offsets': [start, stop]}


def assert_same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def peak_bytes(function: Any, *args: Any) -> int:
    tracemalloc.start()
    try:
        function(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_arrays_in_any_layout_are_written_in_row_major_order(tmp_path) -> None:
    array = random_bits(FLOATS[0], (4, 6))
    layouts = {'turned': array.T, 'strided': array[::2, 1::3], 'backward': array[::-1]}
    digests = save(tmp_path / 'x.safetensors', layouts)
    for name, found in load(tmp_path / 'x.safetensors').items():
        assert_same_bits(found, layouts[name].copy())
        assert digests[name] == safetensors.digest(layouts[name]) == safetensors.digest(found)


def test_a_file_is_aligned_in_order_and_keeps_its_metadata(tmp_path) -> None:
    path = tmp_path / 'new' / 'x.safetensors'
    names = ['z', 'a b', 'ü\n"', '']
    save(path, {name: random_bits(FLOATS[0], (2,), i) for i, name in enumerate(names)}, of='us')
    assert list(safetensors.read_header(path)) == names
    assert int.from_bytes(path.read_bytes()[:8], 'little') % 8 == 0
    assert os.listdir(path.parent) == ['x.safetensors']


def test_only_the_bytes_of_the_tensor_are_read(tmp_path) -> None:
    """One tensor of 4 GiB, a hole in the file, and one of 4 bytes."""
    path = tmp_path / 'x.safetensors'
    header = {'hole': entry('F32', [1 << 30], 0, 1 << 32)}
    header['one'] = entry('F32', [1], 1 << 32, (1 << 32) + 4)
    path.write_bytes(framed(json.dumps(header).encode()))
    with path.open('r+b') as file:
        file.truncate(path.stat().st_size + (1 << 32))
        file.seek(0, os.SEEK_END)
        file.write(np.float32(2.5).tobytes())
    one = safetensors.read_header(path)['one']
    assert safetensors.read(path, one) == [2.5]
    assert peak_bytes(safetensors.read, path, one) < 1 << 20


def test_two_arrays_are_held_at_a_time(tmp_path) -> None:
    given: list[weakref.ref] = []

    def make(name: str) -> np.ndarray:
        assert sum(array() is not None for array in given) <= 1
        array = np.ones(3, np.float32)
        given.append(weakref.ref(array))
        return array

    shapes = {name: (np.dtype(np.float32), (3,)) for name in 'abcd'}
    safetensors.write(tmp_path / 'x', shapes, make, {})
    assert len(given) == 4


@pytest.mark.parametrize(('code', 'bits'), [('BOOL', 8), ('I64', 64), ('F4', 4)])
def test_other_dtypes_are_listed_and_not_read(tmp_path, code: str, bits: int) -> None:
    path = tmp_path / 'x.safetensors'
    size = 4 * bits // 8
    header = {'mask': entry(code, [4], 0, size), 'x': entry('F32', [], size, size + 4)}
    path.write_bytes(framed(json.dumps(header).encode(), bytes(size + 4)))
    entries = safetensors.read_header(path)
    assert entries['mask'].code == code and entries['mask'].shape == (4,)
    assert safetensors.read(path, entries['x']) == 0
    with pytest.raises(CheckpointFileError, match=f"'mask' has dtype {code}; accepted are F32"):
        safetensors.read(path, entries['mask'])


def test_a_file_that_is_cut_anywhere_or_too_long_is_named(tmp_path) -> None:
    path = tmp_path / 'x.safetensors'
    arrays = {'first': (2, 3), 'empty': (0,), 'second': (3,), 'third': ()}
    save(path, {n: random_bits(FLOATS[i % 3], s) for i, (n, s) in enumerate(arrays.items())})
    whole = path.read_bytes()
    for data in (*(whole[:size] for size in range(len(whole))), whole + b'\0'):
        path.write_bytes(data)
        with pytest.raises(CheckpointFileError, match=f'x.safetensors: .*, of {len(data)} bytes'):
            safetensors.read_header(path)


def test_a_shape_of_more_bytes_than_can_be_counted_is_refused(tmp_path) -> None:
    path = tmp_path / 'x.safetensors'
    header = {'a.weight': entry('F32', [1 << 32, 1 << 32], 0, 0)}  # 0 in a uint64
    path.write_bytes(framed(json.dumps(header).encode(), bytes(4)))
    with pytest.raises(CheckpointFileError, match=r'x\.safetensors.*overflow'):
        safetensors.read_header(path)


@pytest.mark.parametrize('length', [0, 93, 150_000_000, (1 << 64) - 1])
def test_an_announced_length_is_checked_before_it_is_read(tmp_path, length: int) -> None:
    path = tmp_path / 'x.safetensors'
    with path.open('wb') as file:
        file.write(length.to_bytes(8, 'little'))
        file.truncate(200_000_000 if length == 150_000_000 else 100)

    def refused() -> None:
        with pytest.raises(CheckpointFileError, match=r'x.safetensors: .*(EOF|header)'):
            safetensors.read_header(path)

    assert peak_bytes(refused) < 1 << 20


def two_tensors(path: pathlib.Path) -> dict[str, safetensors.Entry]:
    save(path, {'a': random_bits(FLOATS[0], (4,)), 'b': random_bits(FLOATS[0], (1 << 20,))})
    return safetensors.read_header(path)


@pytest.mark.parametrize('name', ['a', 'b'])
def test_a_file_that_shrinks_after_its_header_was_read(tmp_path, name: str) -> None:
    entries = two_tensors(tmp_path / 'x')
    os.truncate(tmp_path / 'x', entries['b'].stop - 1)

    def refused() -> None:
        with pytest.raises(CheckpointFileError, match='x: not a whole safetensors file'):
            safetensors.read(tmp_path / 'x', entries[name])

    assert peak_bytes(refused) < 1 << 20


def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch) -> None:
    """Under a memory map the process would be killed."""
    path = tmp_path / 'x'
    entries = two_tensors(path)
    library = safetensors.safe_open

    def open_and_cut(*args: Any, **kwargs: Any) -> Any:
        opened = library(*args, **kwargs)
        os.truncate(path, entries['b'].start + 5000)
        return opened

    monkeypatch.setattr(safetensors, 'safe_open', open_and_cut)
    with pytest.raises(CheckpointFileError, match=r'x: .*Could not read tensor b'):
        safetensors.read(path, entries['b'])


def test_a_file_that_is_another_one_since_its_header_was_read(tmp_path) -> None:
    path = tmp_path / 'x'
    entries = two_tensors(path)
    for changed in (random_bits(FLOATS[0], (2, 2)), random_bits(FLOATS[1], (4,))):
        save(path, {'a': changed})
        with pytest.raises(CheckpointFileError, match=r"x: tensor 'a' .* the file has changed"):
            safetensors.read(path, entries['a'])
        with pytest.raises(CheckpointFileError, match=r'x: .*does not contain tensor b'):
            safetensors.read(path, entries['b'])


@pytest.mark.parametrize('dtype', FLOATS, ids=str)
@pytest.mark.parametrize('value', ['nan', 'inf', '-inf'])
def test_values_that_are_not_finite_are_named(tmp_path, dtype: np.dtype, value: str) -> None:
    array = np.zeros((3, 1000, 1000), dtype)
    safetensors.check_finite('x', array, tmp_path)
    array[1, 200, 7] = array[2, 0, 0] = array[2, 999, 999] = float(value)
    words = rf"tensor 'x' .* not finite: 3 of 3000000, the first {value} at index \(1, 200, 7\)"
    with pytest.raises(CheckpointFileError, match=words):
        safetensors.check_finite('x', array, tmp_path)
    with pytest.raises(CheckpointFileError, match=r'not finite: 3 of .* at index \(0, 0, 2\)'):
        safetensors.check_finite('x', array.T, tmp_path)


@pytest.mark.parametrize('dtype', [ml_dtypes.bfloat16, np.float16])
def test_every_number_of_half_precision_is_known_as_finite_or_not(tmp_path, dtype: Any) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid='ignore'):
        finite = np.isfinite(every.astype(np.float32))
    safetensors.check_finite('x', every[finite], tmp_path)
    for value in every[~finite][::7]:
        with pytest.raises(CheckpointFileError, match='not finite: 1 of 1'):
            safetensors.check_finite('x', np.array([value]), tmp_path)


@pytest.mark.parametrize('dtype', FLOATS, ids=str)
def test_checking_needs_little_memory(tmp_path, dtype: np.dtype) -> None:
    array = np.zeros((64, 1 << 18), dtype)
    for layout in (array, array.T):
        assert peak_bytes(safetensors.check_finite, 'x', layout, tmp_path) < 8 << 20


@pytest.mark.parametrize('failure', [KeyError('gone'), KeyboardInterrupt('now')])
def test_a_file_that_cannot_be_finished_leaves_the_older_one(tmp_path, failure) -> None:
    path = tmp_path / 'x.safetensors'
    path.write_text('older')

    def arrays(name: str) -> np.ndarray:
        if name == 'b':
            raise failure
        return np.zeros(3, np.float32)

    shapes = {name: (np.dtype(np.float32), (3,)) for name in 'ab'}
    with pytest.raises(type(failure)):
        safetensors.write(path, shapes, arrays, {})
    assert os.listdir(tmp_path) == ['x.safetensors'] and path.read_text() == 'older'


def test_agrees_with_the_package_of_the_format(tmp_path) -> None:
    arrays = {
        f'{dtype} {shape}': random_bits(dtype, shape, seed)
        for seed, dtype in enumerate(FLOATS)
        for shape in SHAPES
    }
    ours, theirs = tmp_path / 'ours.safetensors', tmp_path / 'theirs.safetensors'
    save(ours, arrays, format='np')
    for name, fields in deserialize(ours.read_bytes()):
        expected = arrays[name]
        assert fields['dtype'] == safetensors.read_header(ours)[name].code
        assert tuple(fields['shape']) == expected.shape
        assert bytes(fields['data']) == expected.tobytes()
    with safe_open(ours, 'np') as file:
        assert set(file.keys()) == arrays.keys() and file.metadata() == {'format': 'np'}

    save_file(arrays, theirs, {'format': 'np'})
    found = load(theirs)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert_same_bits(found[name], array)
