"""Folders in the hub's layout: what is read, what is refused, and what makes two of them one."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nope.interop import safetensors
from nope.interop.directory import INDEX, Directory, fingerprint, open_directory
from nope.interop.safetensors import CheckpointFileError
from tests.runtime.lfs import pointer

CONFIG = {'model_type': 'llama', 'rope_theta': 1e4, 'layers': [1, 2]}
ARRAYS = {
    'a.weight': np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    'b.weight': np.linspace(-3, 3, 5, dtype=np.float32).astype(ml_dtypes.bfloat16),
    'c.bias': np.linspace(0, 9, 3, dtype=np.float32).astype(np.float16),
}
FIRST, SECOND = 'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'
WEIGHT_MAP = {'a.weight': FIRST, 'b.weight': FIRST, 'c.bias': SECOND}


def save(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    shapes = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    return safetensors.write(path, shapes, arrays.__getitem__, {})


def write_json(path: pathlib.Path, value: Any) -> None:
    path.write_text(json.dumps(value))


@pytest.fixture
def single(tmp_path) -> pathlib.Path:
    """One file, as this library exports it: with checksums."""
    folder = tmp_path / 'single'
    checksums = save(folder / 'model.safetensors', ARRAYS)
    write_json(folder / 'config.json', CONFIG)
    write_json(folder / 'nope_export.json', {'checksums': checksums, 'step': 7})
    return folder


@pytest.fixture
def sharded(tmp_path) -> pathlib.Path:
    """Two files and an index, as other programs write it: without checksums."""
    folder = tmp_path / 'sharded'
    for file in (FIRST, SECOND):
        save(folder / file, {n: a for n, a in ARRAYS.items() if WEIGHT_MAP[n] == file})
    write_json(folder / 'config.json', CONFIG)
    index = {'metadata': {'total_size': 40.0}, 'weight_map': WEIGHT_MAP}
    write_json(folder / 'model.safetensors.index.json', index)
    return folder


def set_weight_map(folder: pathlib.Path, weight_map: Any) -> None:
    write_json(folder / 'model.safetensors.index.json', {'weight_map': weight_map})


def assert_holds_arrays(directory: Directory) -> None:
    assert directory.tensors.keys() == ARRAYS.keys()
    for name, expected in ARRAYS.items():
        found = directory.read(name)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()


def assert_refused(folder: pathlib.Path, words: str) -> None:
    with pytest.raises(CheckpointFileError, match=words) as caught:
        open_directory(folder)
    assert str(folder) in str(caught.value) and '\n' not in str(caught.value)


def test_one_file(single: pathlib.Path) -> None:
    directory = open_directory(single)
    assert directory.config == CONFIG and directory.path == single
    assert directory.checksums.keys() == ARRAYS.keys()
    assert_holds_arrays(directory)


def test_several_files_with_an_index(sharded: pathlib.Path) -> None:
    directory = open_directory(sharded)
    assert directory.checksums == {}
    assert {n: t.file.name for n, t in directory.tensors.items()} == WEIGHT_MAP
    assert_holds_arrays(directory)


@pytest.mark.parametrize('there', [True, False])
def test_one_whole_file_is_read_beside_the_index_of_an_earlier_save(
    single: pathlib.Path, sharded: pathlib.Path, there: bool
) -> None:
    """As `transformers` does, whose later save in one file leaves the index behind."""
    shutil.copyfile(single / 'model.safetensors', sharded / 'model.safetensors')
    if not there:
        for shard in set(WEIGHT_MAP.values()):
            (sharded / shard).unlink()
    found = open_directory(sharded)
    assert {located.file.name for located in found.tensors.values()} == {'model.safetensors'}


def test_weights_of_another_name_are_refused(single: pathlib.Path) -> None:
    for name in ('model.safetensors', None):
        write_json(single / 'config.json', {**CONFIG, 'transformers_weights': name})
        assert open_directory(single).tensors.keys() == ARRAYS.keys()
    write_json(single / 'config.json', {**CONFIG, 'transformers_weights': 'b.safetensors'})
    with pytest.raises(CheckpointFileError, match=r'transformers_weights is .*accepted is model\.'):
        open_directory(single)


def test_links_are_followed_as_in_the_hubs_cache(sharded: pathlib.Path, tmp_path) -> None:
    blobs, snapshot = tmp_path / 'blobs', tmp_path / 'snapshot'
    snapshot.mkdir()
    sharded.rename(blobs)
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(file)
    assert_holds_arrays(open_directory(snapshot))
    (blobs / SECOND).unlink()
    assert_refused(snapshot, f'{SECOND}: cannot be read: No such file')


def test_a_config_of_another_name(single: pathlib.Path) -> None:
    (single / 'config.json').rename(single / 'lit_config.json')
    assert open_directory(single).config == CONFIG
    write_json(single / 'config.json', {'first': True})
    assert open_directory(single).config == {'first': True}
    (single / 'config.json').unlink()
    (single / 'lit_config.json').unlink()
    assert_refused(single, r'no config in it; accepted is config\.json or lit_config\.json')


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (b'', 'not a JSON object in UTF-8'),
        (b'[1]', r'not a JSON object but \[1\]'),
        (b'{"a": "\xff"}', 'not a JSON object in UTF-8'),
        (b'{"a":' * 200_000, 'not a JSON object in UTF-8'),
        (b'{"a": 1' + b'0' * 5000 + b'}', 'not a JSON object in UTF-8'),
    ],
    ids=range(5),
)
@pytest.mark.parametrize(
    'file', ['config.json', 'model.safetensors.index.json', 'nope_export.json']
)
def test_json_files_that_are_not(sharded, file: str, content: bytes, words: str) -> None:
    (sharded / file).write_bytes(content)
    assert_refused(sharded, f'{file}: .*{words}')


@pytest.mark.parametrize(
    ('file', 'most'), [('config.json', 16 << 20), ('model.safetensors.index.json', 64 << 20)]
)
def test_json_files_that_are_too_large(sharded, file: str, most: int) -> None:
    os.truncate(sharded / file, most + 1)
    assert_refused(sharded, f'{file}: {most + 1} bytes; accepted are at most {most}')


@pytest.mark.parametrize(
    'file', ['config.json', 'model.safetensors.index.json', 'nope_export.json', FIRST]
)
def test_files_that_are_not_regular(sharded: pathlib.Path, file: str) -> None:
    (sharded / file).unlink(missing_ok=True)
    os.mkfifo(sharded / file)  # opening it would wait for ever
    assert_refused(sharded, f'{file}: not a regular file')
    (sharded / file).unlink()
    (sharded / file).mkdir()
    assert_refused(sharded, f'{file}: not a regular file')


def test_folders_that_are_not(tmp_path) -> None:
    assert_refused(tmp_path / 'absent', 'not a folder that can be read: No such file')
    (tmp_path / 'file').write_text('')
    assert_refused(tmp_path / 'file', 'not a folder that can be read: Not a directory')
    assert_refused(tmp_path / 'a\0b', 'not a folder that can be read: embedded null')


def test_no_weights(single: pathlib.Path) -> None:
    (single / 'model.safetensors').unlink()
    assert_refused(single, r'no weights in it; accepted are model\.safetensors')


def test_several_files_without_an_index(sharded: pathlib.Path) -> None:
    (sharded / 'model.safetensors.index.json').unlink()
    assert_refused(sharded, f"2 files of tensors and no .*index.json .*'{FIRST}', '{SECOND}'")


@pytest.mark.parametrize(
    ('pickle', 'library'),
    [
        ('pytorch_model.bin', 'transformers'),
        ('lit_model.pth', 'torch'),
        ('model.pt', 'torch'),
        ("it's a.ckpt", 'torch'),
    ],
)
def test_pickles_are_refused_with_a_command_that_converts_them(
    tmp_path, pickle: str, library: str
) -> None:
    folder = tmp_path / 'a "model" of $HOME'
    folder.mkdir()
    write_json(folder / 'config.json', CONFIG)
    (folder / pickle).write_bytes(b'\x80\x04.')
    with pytest.raises(CheckpointFileError, match='can run code when they are read') as caught:
        open_directory(folder)
    command = str(caught.value).partition('convert those you trust: ')[2]
    assert '\n' not in command
    python, option, code, source, target = shlex.split(command)
    assert (python, option) == ('python', '-c')
    compile(code, 'command', 'exec')
    assert library in code and str(folder) in source and str(folder) in target
    if library == 'torch':
        assert source == str(folder / pickle) and 'weights_only=True' in code


@pytest.mark.parametrize(
    'name',
    [
        '',
        '..',
        '/etc/passwd',
        '../single/model.safetensors',
        'sub/x.safetensors',
        './' + SECOND,
        SECOND + '\0',
        'config.json',
        'x.safetensors',
        '\ud800.safetensors',
        None,
        [SECOND],
    ],
)
def test_an_index_names_files_of_its_folder_only(sharded, single, name: object) -> None:
    set_weight_map(sharded, {**WEIGHT_MAP, 'c.bias': name})
    words = r"index\.json: tensor 'c\.bias' is to be in .*; accepted is the name of a .safetensors"
    assert_refused(sharded, words)


@pytest.mark.parametrize('weight_map', [None, [], 'a', 3])
def test_an_index_has_a_weight_map(sharded: pathlib.Path, weight_map: object) -> None:
    set_weight_map(sharded, weight_map)
    assert_refused(sharded, r'index\.json: weight_map is .*; accepted is an object')


def test_an_index_and_its_files_agree(sharded: pathlib.Path) -> None:
    set_weight_map(sharded, {**WEIGHT_MAP, 'd': SECOND})
    assert_refused(sharded, f"index.json: tensor 'd' is to be in '{SECOND}', .* not hold it")
    set_weight_map(sharded, {**WEIGHT_MAP, 'a.weight': SECOND})
    assert_refused(sharded, f"tensor 'a.weight' is to be in '{SECOND}', .* not hold it")
    set_weight_map(sharded, WEIGHT_MAP)
    save(sharded / SECOND, {name: ARRAYS[name] for name in ('a.weight', 'c.bias')})
    assert_refused(sharded, f"{SECOND}: tensor 'a.weight' is in {FIRST} too")


def test_a_tensor_that_the_index_lacks_is_named_and_not_read(sharded: pathlib.Path, caplog) -> None:
    set_weight_map(sharded, {n: f for n, f in WEIGHT_MAP.items() if n != 'b.weight'})
    assert open_directory(sharded).tensors.keys() == {'a.weight', 'c.bias'}
    (said,) = caplog.messages
    assert said.endswith(
        f"{FIRST}: {INDEX} lacks 1 of its tensors, which are not read, as 'b.weight'"
    )


@pytest.mark.parametrize('file', ['config.json', 'model.safetensors.index.json', SECOND])
def test_a_pointer_of_git_lfs_is_named(sharded: pathlib.Path, file: str) -> None:
    (sharded / file).write_bytes(pointer())
    assert_refused(sharded, rf'{file} is a Git LFS pointer.*548,105,171 bytes.*git lfs pull')


@pytest.mark.parametrize('checksums', [None, [], {}, {'z': '0' * 64}])
def test_checksums_are_of_the_tensors(single: pathlib.Path, checksums: Any) -> None:
    write_json(single / 'nope_export.json', {'checksums': checksums})
    assert_refused(single, 'nope_export.json: checksums is .*; accepted .* each of the 3 tensors')


@pytest.mark.parametrize('length', ['2048', 0, True, 1.5])
def test_a_training_length_is_a_number_of_tokens(single: pathlib.Path, length: Any) -> None:
    export = json.loads((single / 'nope_export.json').read_text())
    write_json(single / 'nope_export.json', export | {'train_length': length})
    assert_refused(single, 'nope_export.json: train_length is .*; accepted is an integer from 1')


def test_checksums_find_every_flipped_bit(single: pathlib.Path) -> None:
    file = single / 'model.safetensors'
    whole = file.read_bytes()
    directory = open_directory(single)
    for name, located in directory.tensors.items():
        for bit in range(8 * located.entry.start, 8 * located.entry.stop):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            file.write_bytes(damaged)
            words = f"model.safetensors: tensor '{name}' is not what nope_export.json has"
            with pytest.raises(CheckpointFileError, match=words):
                directory.read(name)


def test_the_fingerprint_is_of_the_model_not_of_its_files(single, sharded, tmp_path) -> None:
    found = fingerprint(open_directory(single))
    assert len(found) == 16 and set(found) <= set('0123456789abcdef')
    assert fingerprint(open_directory(sharded)) == found
    (single / 'config.json').write_text(json.dumps(dict(reversed(CONFIG.items())), indent=4))
    assert fingerprint(open_directory(single.rename(tmp_path / 'elsewhere'))) == found


def test_the_fingerprint_sees_config_names_shapes_dtypes_and_values(tmp_path) -> None:
    bits = np.arange(6, dtype=np.uint16)

    def found(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
        write_json(tmp_path / 'config.json', config)
        save(tmp_path / 'model.safetensors', arrays)
        return fingerprint(open_directory(tmp_path))

    plain = {'x': bits.view(np.float16)}
    prints = [
        found({}, plain),
        found({'a': 1}, plain),
        found({}, {'y': plain['x']}),
        found({}, {'x': plain['x'].reshape(2, 3)}),
        found({}, {'x': bits.view(ml_dtypes.bfloat16)}),
        found({}, {'x': (bits + 1).view(np.float16)}),
        found({}, {**plain, 'y': np.zeros(0, np.float16)}),
        found({}, {}),
    ]
    assert len(set(prints)) == len(prints)


def test_the_fingerprint_samples_the_first_the_last_and_pages_between(tmp_path) -> None:
    values = np.zeros(1 << 20, np.float32)
    write_json(tmp_path / 'config.json', {})

    def found(changed: slice) -> str:
        array = values.copy()
        array[changed] = 1
        save(tmp_path / 'model.safetensors', {'x': array})
        return fingerprint(open_directory(tmp_path))

    ranges = [slice(0), slice(0, 1), slice(-1, None), slice(0, None)]
    ranges += [slice(i * 2**14, (i + 1) * 2**14) for i in (1, 30, 63)]  # a head of 64
    prints = [found(changed) for changed in ranges]
    assert len(set(prints)) == len(prints)


def test_the_fingerprint_of_a_file_that_shrank(single: pathlib.Path) -> None:
    directory = open_directory(single)
    os.truncate(single / 'model.safetensors', directory.tensors['c.bias'].entry.stop - 1)
    with pytest.raises(CheckpointFileError, match=r"cut short: tensor 'c\.bias'"):
        fingerprint(directory)
