from __future__ import annotations

import collections
import multiprocessing
import pathlib

import pytest
import tensorflow_datasets as tfds

from nope.data.sources import Stdlib, stdlib
from nope.data.splits import split_of


def build(cache: pathlib.Path) -> pathlib.Path:
    return stdlib.build(Stdlib().identity(), cache)


def test_lists_sources_only():
    names = stdlib.names_in(stdlib.folder())
    assert names == sorted(names)
    assert len(names) > 500
    assert all(name.endswith('.py') for name in names)
    assert not any('site-packages' in name or '__pycache__' in name for name in names)
    assert 'json/decoder.py' in names


def test_leaves_out_what_differs_between_machines(tmp_path):
    kept = ['os.py', 'email/utils.py']
    left_out = [
        'site-packages/numpy.py',
        'dist-packages/apt.py',
        'email/__pycache__/utils.py',
        '_sysconfigdata__linux.py',
        'config-3.11/python-config.py',
        'pydoc_data/topics.txt',
    ]
    for name in kept + left_out:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('pass')
    assert stdlib.names_in(tmp_path) == sorted(kept)


def test_split_depends_on_the_path_alone():
    # Pinned: another hash would silently move test files into training.
    assert split_of(b'json/decoder.py') == 'train'
    splits = [split_of(name.encode()) for name in stdlib.names_in(stdlib.folder())]
    shares = {k: v / len(splits) for k, v in collections.Counter(splits).items()}
    assert 0.85 < shares['train'] < 0.95
    assert 0.03 < shares['validation'] < 0.08
    assert 0.03 < shares['test'] < 0.08


def test_builder_holds_every_file_once_in_its_split(cache):
    folder = build(cache)
    builder = tfds.builder_from_directory(folder)
    found = {}
    for split in ('train', 'validation', 'test'):
        for example in builder.as_data_source(split):
            name = example['path'].decode()
            assert split_of(name.encode()) == split
            found[name] = example['text']
    root = stdlib.folder()
    assert sorted(found) == stdlib.names_in(root)
    assert all(found[name] == (root / name).read_bytes() for name in found)


def test_builder_keeps_invalid_utf8(tmp_path, monkeypatch):
    root = tmp_path / 'library'
    root.mkdir()
    texts = {f'module{i}.py': b'# \xff\xfe\x00 %d' % i for i in range(60)}
    for name, text in texts.items():
        (root / name).write_bytes(text)
    monkeypatch.setattr(stdlib, 'folder', lambda: root)
    builder = tfds.builder_from_directory(build(tmp_path / 'cache'))
    examples = [e for split in builder.info.splits for e in builder.as_data_source(split)]
    assert {e['path'].decode(): e['text'] for e in examples} == texts


def test_builds_once_and_again_for_other_sources(tmp_path, monkeypatch):
    root = tmp_path / 'library'
    root.mkdir()
    for i in range(60):
        (root / f'module{i}.py').write_text(f'x = {i}')
    monkeypatch.setattr(stdlib, 'folder', lambda: root)
    first = build(tmp_path / 'cache')
    assert build(tmp_path / 'cache') == first
    (root / 'module1.py').write_text('x = "changed"')
    assert build(tmp_path / 'cache') != first


def test_two_processes_may_build_at_once(tmp_path):
    context = multiprocessing.get_context('spawn')
    with context.Pool(2) as pool:
        folders = pool.map(build, [tmp_path, tmp_path])
    assert folders[0] == folders[1]
    assert tfds.builder_from_directory(folders[0]).info.splits['train'].num_examples > 500
    assert not list(tmp_path.glob('tfds/*partial*'))


def test_identity_names_python_and_the_builder():
    found = Stdlib().identity()
    assert found['python'].startswith('3.')
    assert found['builder']
    assert found['bytes'] > 1_000_000


def test_a_python_without_its_sources_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(stdlib, 'folder', lambda: tmp_path)
    with pytest.raises(FileNotFoundError, match=r'data\.mixture\[1\]: kind stdlib: no \*\.py'):
        Stdlib(names={'source': 'data.mixture[1]'}).identity()
