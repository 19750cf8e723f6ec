"""Checkpoints onto a mesh: the right values in the right places, or an error before any is read,
and never three tensors in host memory."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import pathlib
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
import pytest

from nope import sharding
from nope.interop import Described, Directory, Export, describe, load, open_directory, safetensors
from nope.interop import save as save_directory
from nope.interop.safetensors import CheckpointFileError
from nope.interop.save import DTYPES
from nope.model import ModelConfig
from nope.positions import Alibi, NoPE, RoPE
from nope.runtime import files
from nope.runtime.ahead import one_ahead
from nope.sharding import MeshConfig
from nope.variables import Variables, abstract_variables, with_uniform_lam
from tests import tiny

# Every tensor of a layer apart; and queries, keys and values in one, biases everywhere.
LLAMA = tiny.model(position=RoPE())
BLOOM = tiny.model(
    kv_heads=4,
    mlp_width=4 * tiny.MODEL.width,
    position=Alibi(),
    tied_head=True,
    norm='layer',
    norm_bias=True,
    embedding_norm=True,
    qkv_bias=True,
    output_bias=True,
    mlp_bias=True,
    mlp='plain',
    activation='gelu_tanh',
)
MODELS = {'llama': LLAMA, 'bloom': BLOOM}
MESHES = [(8, 1, 1, 1), (1, 2, 4, 1), (2, 1, 2, 2)]
Arrays = dict[str, np.ndarray]


def save(path: pathlib.Path, model: ModelConfig, variables: Variables, **options) -> pathlib.Path:
    described = Described(model, train_length=64)
    save_directory(path, variables, described, export=Export(**options))
    return path


@pytest.fixture(scope='module')
def folders(tmp_path_factory) -> Mapping[str, pathlib.Path]:
    base = tmp_path_factory.mktemp('load')
    return {name: save(base / name, MODELS[name], tiny.variables(MODELS[name])) for name in MODELS}


def test_a_save_removes_what_a_killed_one_left(tmp_path: pathlib.Path) -> None:
    left = files.unfinished(tmp_path / 'model')
    left.mkdir()
    (left / 'model.safetensors').write_bytes(b'half')
    save(tmp_path / 'model', LLAMA, tiny.variables(LLAMA))
    assert [path.name for path in tmp_path.iterdir()] == ['model']


def found_model(directory: Directory) -> ModelConfig:
    return describe(directory).model


@pytest.mark.parametrize('shape', MESHES, ids=str)
@pytest.mark.parametrize('name', MODELS)
def test_every_mesh_gets_the_same_values_in_its_own_shares(
    folders: Mapping[str, pathlib.Path], name: str, shape: tuple[int, ...]
) -> None:
    mesh = sharding.make_mesh(MeshConfig(*shape))
    directory = open_directory(folders[name])
    model = found_model(directory)
    found = load(directory, model, mesh)
    tiny.assert_same(found, tiny.variables(MODELS[name]))
    for leaf, target in zip(
        jax.tree.leaves(found), jax.tree.leaves(abstract_variables(model, mesh)), strict=True
    ):
        assert leaf.dtype == np.float32 and leaf.committed
        assert leaf.sharding.is_equivalent_to(target.sharding, leaf.ndim)
        share = target.sharding.shard_shape(leaf.shape)
        assert {part.data.shape for part in leaf.addressable_shards} == {share}


NAMES = 'model.norm.weight', 'model.embed_tokens.weight'


def in_dtypes(source: pathlib.Path, folder: pathlib.Path, *dtypes: str) -> Described:
    """The folder with tensors in other dtypes, the first one for all but those of `NAMES`."""
    directory = open_directory(source)
    by_name = dict.fromkeys(directory.tensors, dtypes[0]) | dict(
        zip(NAMES, dtypes[1:], strict=False)
    )
    arrays = {name: directory.read(name).astype(DTYPES[by_name[name]]) for name in by_name}
    rewritten(source, folder, arrays)
    return describe(open_directory(folder))


@pytest.mark.parametrize('said', ['float32', 'float16', 'auto', 'torch.bfloat16', None])
def test_the_dtype_is_that_of_the_tensors(
    folders: Mapping[str, pathlib.Path], tmp_path: pathlib.Path, said: str | None
) -> None:
    found = in_dtypes(folders['llama'], tmp_path, 'bfloat16')
    config = json.loads((tmp_path / 'config.json').read_text())
    (tmp_path / 'config.json').write_text(json.dumps({**config, 'torch_dtype': said}))
    assert describe(open_directory(tmp_path)) == found and found.dtype == 'bfloat16'


@pytest.mark.parametrize(
    'dtypes',
    [
        ('bfloat16', 'float16'),
        ('bfloat16', 'float32'),
        ('float16', 'float16', 'float32'),
        ('float32', 'bfloat16', 'float16'),
    ],
)
def test_of_several_dtypes_one_holds_all_values(
    folders: Mapping[str, pathlib.Path], tmp_path: pathlib.Path, dtypes: tuple[str, ...]
) -> None:
    assert in_dtypes(folders['llama'], tmp_path, *dtypes).dtype == 'float32'


@pytest.mark.parametrize('dtype', ['bfloat16', 'float16'])
def test_every_number_of_half_precision_comes_back(tmp_path: pathlib.Path, dtype: str) -> None:
    model = dataclasses.replace(LLAMA, vocab_size=2**16 // LLAMA.width)
    source = save(tmp_path / 'source', model, tiny.variables(model), dtype=dtype)
    bits = np.arange(2**16, dtype=np.uint16)
    infinite = np.array(np.inf, DTYPES[dtype]).view(np.uint16)
    bits[bits & 0x7FFF >= infinite] = 0
    numbers = bits.view(DTYPES[dtype]).reshape(-1, model.width)
    rewritten(source, tmp_path / 'all', {NAMES[1]: numbers})
    directory = open_directory(tmp_path / 'all')
    variables = load(directory, model, tiny.mesh())
    back = save(tmp_path / 'back', model, variables, dtype=describe(directory).dtype)
    for name in directory.tensors:
        written = open_directory(back).read(name)
        assert written.dtype == DTYPES[dtype]
        np.testing.assert_array_equal(written.view(np.uint16), directory.read(name).view(np.uint16))


@pytest.mark.parametrize(
    ('value', 'refused'),
    [
        (2.0**-25, ['float16']),  # half of the least number of float16: a tie, to 0
        (1.01 * 2.0**-25, []),
        (-1e-9, ['float16']),
        (2e-38, ['float16']),
        (-0.0, []),
        (65_519.0, []),
        (65_520.0, ['float16']),
        (-3.4e38, ['bfloat16', 'float16']),
    ],
)
def test_a_dtype_that_loses_a_number_is_refused(
    folders: Mapping[str, pathlib.Path], tmp_path: pathlib.Path, value: float, refused: list[str]
) -> None:
    array = open_directory(folders['llama']).read(NAMES[0]).copy()
    array[3] = value
    rewritten(folders['llama'], tmp_path / 'source', {NAMES[0]: array})
    variables = load(open_directory(tmp_path / 'source'), LLAMA, tiny.mesh())
    for dtype in DTYPES:
        wrong = f"{dtype}.*1 values of tensor '{NAMES[0]}' 0 or infinite; accepted: 'float32'"
        expected = pytest.raises(ValueError, match=wrong)
        with expected if dtype in refused else contextlib.nullcontext():
            save(tmp_path / dtype, LLAMA, variables, dtype=dtype)
        assert (tmp_path / dtype).exists() == (dtype not in refused)


def test_a_product_with_lambda_may_be_rounded_to_zero(tmp_path: pathlib.Path) -> None:
    least = jax.tree.map(lambda leaf: leaf * 0 + 2.0**-24, tiny.variables(LLAMA))
    folder = save(tmp_path / 'out', LLAMA, with_uniform_lam(least, 0.5), dtype='float16')
    found = open_directory(folder).read('model.layers.0.self_attn.q_proj.weight')
    assert not found.any()


def test_what_is_loaded_may_be_donated(folders: Mapping[str, pathlib.Path]) -> None:
    """No two parameters share a buffer, and none is memory of numpy's."""
    directory = open_directory(folders['llama'])
    found = load(directory, found_model(directory), tiny.mesh())
    expected = jax.tree.map(lambda leaf: np.asarray(leaf) + 1, found)
    add_one = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf + 1, tree), donate_argnums=0)
    tiny.assert_same(add_one(found), expected)
    tiny.assert_same(load(directory, found_model(directory), tiny.mesh()), tiny.variables(LLAMA))


class Reads:
    """Notes what `Directory.read` hands out, how many of it are alive, and how far it is ahead of
    the tensors that are placed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.alive = self.most = self.used = self.furthest = 0
        read = Directory.read

        def used(make: Any, items: Any) -> Iterator[Any]:
            for found in one_ahead(make, items):
                self.used += 1
                yield found

        monkeypatch.setattr(importlib.import_module('nope.interop.load'), 'one_ahead', used)

        def noted(directory: Directory, name: str) -> np.ndarray:
            array = read(directory, name)
            owner = array  # views of it outlive the view that is handed out
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            self.names.append(name)
            self.furthest = max(self.furthest, len(self.names) - self.used)
            self.alive += 1
            self.most = max(self.most, self.alive)
            weakref.finalize(owner, self._end)
            return array

        monkeypatch.setattr(Directory, 'read', noted)

    def _end(self) -> None:
        self.alive -= 1


@pytest.mark.parametrize('shape', [None, (2, 2, 2, 1)], ids=['one device', 'eight devices'])
@pytest.mark.parametrize('name', MODELS)
def test_two_tensors_are_in_host_memory_at_a_time(
    folders: Mapping[str, pathlib.Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    shape: tuple[int, ...] | None,
) -> None:
    directory = open_directory(folders[name])
    mesh = sharding.make_mesh(MeshConfig(*shape)) if shape else tiny.mesh()
    reads = Reads(monkeypatch)
    found = load(directory, found_model(directory), mesh)
    assert sorted(reads.names) == sorted(directory.tensors)  # each of them once
    assert (reads.most, reads.alive) == (1, 0)  # the other is a copy in the order of its parameter
    assert 1 <= reads.furthest <= 2  # one that is about to be placed, and one behind it
    tiny.assert_same(found, tiny.variables(MODELS[name]))


def rewritten(source: pathlib.Path, folder: pathlib.Path, changes: Arrays, drop: str = '') -> None:
    """The folder as another program writes it, with other tensors."""
    directory = open_directory(source)
    arrays = {name: directory.read(name) for name in directory.tensors if name != drop} | changes
    shapes = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    safetensors.write(folder / 'model.safetensors', shapes, arrays.__getitem__, {})
    (folder / 'config.json').write_text((source / 'config.json').read_text())


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


WRONG = {
    'missing': ({}, 'model.layers.1.mlp.up_proj.weight', r'up_proj.weight.* is missing.*48, 32'),
    'transposed': (
        {'model.layers.0.mlp.down_proj.weight': zeros(48, 32)},
        '',
        r'layers\.0\.mlp\.down_proj\.weight.* has shape \[48, 32\].*\[32, 48\]',
    ),
    'a layer too many': (
        {'model.layers.2.mlp.up_proj.weight': zeros(48, 32)},
        '',
        r'model\.layers\.2\.mlp\.up_proj\.weight.* is no parameter',
    ),
    'scales of one layer': (
        {'model.layers.0.self_attn.scale_param': zeros(4)},
        '',
        r'model\.layers\.1\.self_attn\.scale_param.* is missing',
    ),
}


@pytest.mark.parametrize('fault', WRONG)
def test_tensors_that_are_not_the_models_are_refused_by_name(
    folders: Mapping[str, pathlib.Path], tmp_path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Before any value is read."""
    changes, drop, message = WRONG[fault]
    rewritten(folders['llama'], tmp_path, changes, drop)
    directory = open_directory(tmp_path)
    reads = Reads(monkeypatch)
    for refused in (
        lambda: describe(directory),
        lambda: describe(directory, position=NoPE()),
        lambda: load(directory, LLAMA, tiny.mesh()),
    ):
        with pytest.raises(CheckpointFileError, match=message) as caught:
            refused()
        assert str(tmp_path) in str(caught.value)
    assert not reads.names


def test_a_tied_head_may_be_there_twice_but_not_differ(
    folders: Mapping[str, pathlib.Path], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = open_directory(folders['bloom']).read('transformer.word_embeddings.weight').copy()
    rewritten(folders['bloom'], tmp_path / 'same', {'lm_head.weight': head})
    head[5, 7] += 1
    rewritten(folders['bloom'], tmp_path / 'other', {'lm_head.weight': head})
    reads = Reads(monkeypatch)
    same, other = (open_directory(tmp_path / name) for name in ('same', 'other'))
    assert found_model(other) == found_model(same)
    tiny.assert_same(load(same, found_model(same), tiny.mesh()), tiny.variables(BLOOM))
    with pytest.raises(CheckpointFileError, match=r'word_embeddings.*lm_head\.weight.* differ'):
        load(other, found_model(other), tiny.mesh())
    assert reads.most == 1


def test_a_tied_embedding_may_have_the_name_of_the_head(
    folders: Mapping[str, pathlib.Path], tmp_path
) -> None:
    """As of tools that save one of two shared arrays, the first by its name."""
    name = 'transformer.word_embeddings.weight'
    head = open_directory(folders['bloom']).read(name).copy()
    rewritten(folders['bloom'], tmp_path / 'head', {'lm_head.weight': head}, drop=name)
    found = open_directory(tmp_path / 'head')
    tiny.assert_same(load(found, found_model(found), tiny.mesh()), tiny.variables(BLOOM))


def test_nothing_is_written_over(folders: Mapping[str, pathlib.Path], tmp_path) -> None:
    (tmp_path / 'notes.txt').write_text('mine')
    with pytest.raises(ValueError, match='not an empty folder'):
        save(tmp_path, LLAMA, tiny.variables(LLAMA))
    assert [path.name for path in tmp_path.iterdir()] == ['notes.txt']
