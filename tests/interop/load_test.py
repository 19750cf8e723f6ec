"""Checkpoints onto a mesh: the right values in the right places, or an error before any is read,
and never two tensors in host memory."""

from __future__ import annotations

import pathlib
import weakref
from collections.abc import Iterable, Iterator, Mapping

import jax
import ml_dtypes
import numpy as np
import pytest

from nope import sharding
from nope.interop import Described, Directory, Export, describe, load, open_directory, safetensors
from nope.interop import save as save_directory
from nope.interop.mapping import Tensor
from nope.interop.safetensors import CheckpointFileError
from nope.model import ModelConfig
from nope.positions import Alibi, NoPE, Rotary
from nope.runtime import files
from nope.sharding import MeshConfig
from nope.variables import Variables, abstract_variables
from tests import tiny

# Every tensor of a layer apart; and queries, keys and values in one, biases everywhere.
LLAMA = tiny.model(position=Rotary())
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
MESHES = [(8, 1, 1, 1), (2, 2, 2, 1), (1, 2, 4, 1), (1, 8, 1, 1), (2, 1, 2, 2)]
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


@pytest.mark.parametrize('dtype', ['bfloat16', 'float16'])
def test_halves_become_float32_on_the_devices(tmp_path, dtype: str) -> None:
    mesh = sharding.make_mesh(MeshConfig(2, 2, 2, 1))
    variables = tiny.variables(LLAMA)
    directory = open_directory(save(tmp_path / 'half', LLAMA, variables, dtype=dtype))
    found = load(directory, found_model(directory), mesh)['params']
    half = ml_dtypes.bfloat16 if dtype == 'bfloat16' else np.float16
    rounded = jax.tree.map(
        lambda leaf: np.asarray(leaf).astype(half).astype(np.float32), variables['params']
    )
    tiny.assert_same(found, rounded)


def test_lambda_is_read_where_it_is(tmp_path) -> None:
    variables = tiny.varied_lam(LLAMA)
    directory = open_directory(save(tmp_path / 'scaled', LLAMA, variables, lam='scale_param'))
    mesh = sharding.make_mesh(MeshConfig(1, 4, 2, 1))
    found = load(directory, found_model(directory), mesh)
    tiny.assert_same(found, variables)
    assert found['lam']['head'].sharding.is_fully_replicated


def test_what_is_loaded_may_be_donated(folders: Mapping[str, pathlib.Path]) -> None:
    """No two parameters share a buffer, and none is memory of numpy's."""
    directory = open_directory(folders['llama'])
    found = load(directory, found_model(directory), tiny.mesh())
    expected = jax.tree.map(lambda leaf: np.asarray(leaf) + 1, found)
    add_one = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf + 1, tree), donate_argnums=0)
    tiny.assert_same(add_one(found), expected)
    tiny.assert_same(load(directory, found_model(directory), tiny.mesh()), tiny.variables(LLAMA))


class Reads:
    """Notes what `Directory.read` hands out, and how much of it is alive."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.alive = self.most_tensors = self.bytes = self.most_bytes = 0
        read = Directory.read

        def noted(directory: Directory, name: str) -> np.ndarray:
            array = read(directory, name)
            owner = array  # views of it outlive the view that is handed out
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            self._begin(name, owner.nbytes)
            weakref.finalize(owner, self._end, owner.nbytes)
            return array

        monkeypatch.setattr(Directory, 'read', noted)

    def _begin(self, name: str, nbytes: int) -> None:
        self.names.append(name)
        self.alive += 1
        self.bytes += nbytes
        self.most_tensors = max(self.most_tensors, self.alive)
        self.most_bytes = max(self.most_bytes, self.bytes)

    def _end(self, nbytes: int) -> None:
        self.alive -= 1
        self.bytes -= nbytes


@pytest.mark.parametrize('shape', [None, (2, 2, 2, 1)], ids=['one device', 'eight devices'])
@pytest.mark.parametrize('name', MODELS)
def test_one_tensor_is_in_host_memory_at_a_time(
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
    assert reads.most_tensors == 1
    assert reads.most_bytes == max(
        located.entry.stop - located.entry.start for located in directory.tensors.values()
    )
    assert reads.alive == 0
    tiny.assert_same(found, tiny.variables(MODELS[name]))


def test_progress_is_told_of_every_tensor(folders: Mapping[str, pathlib.Path]) -> None:
    directory = open_directory(folders['llama'])
    seen = []

    def watched(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
        for tensor in tensors:
            yield tensor
            seen.append(tensor.name)

    load(directory, found_model(directory), tiny.mesh(), progress=watched)
    assert sorted(seen) == sorted(directory.tensors)


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
    'another vocabulary': (
        {'model.embed_tokens.weight': zeros(65, 32)},
        '',
        r'model\.embed_tokens\.weight.* has shape \[65, 32\].*\[64, 32\]',
    ),
    'a layer too many': (
        {'model.layers.2.mlp.up_proj.weight': zeros(48, 32)},
        '',
        r'model\.layers\.2\.mlp\.up_proj\.weight.* is no parameter',
    ),
    'unknown': (
        {'model.layers.0.self_attn.sinks': zeros(4)},
        '',
        r'model\.layers\.0\.self_attn\.sinks.* is no parameter',
    ),
    'bias': (
        {'model.layers.0.self_attn.q_proj.bias': zeros(32)},
        '',
        r'model\.layers\.0\.self_attn\.q_proj\.bias.* is no parameter',
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


def test_tables_of_old_files_are_left_out(
    folders: Mapping[str, pathlib.Path], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rotary frequencies, which follow from the config."""
    name = 'model.layers.1.self_attn.rotary_emb.inv_freq'
    rewritten(folders['llama'], tmp_path, {name: zeros(4)})
    directory = open_directory(tmp_path)
    reads = Reads(monkeypatch)
    found = load(directory, found_model(directory), tiny.mesh())
    tiny.assert_same(found, tiny.variables(LLAMA))
    assert name not in reads.names


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
    assert reads.most_tensors == 1


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'width': 64}, r'has shape \[64, 32\].*\[64, 64\]'),
        ({'layers': 3}, r'model\.layers\.2\..* is missing'),
        ({'layers': 1}, r'model\.layers\.1\..* is no parameter'),
        ({'kv_heads': 4}, r'k_proj\.weight.* has shape \[16, 32\].*\[32, 32\]'),
        ({'qkv_bias': True, 'output_bias': True}, r'_proj\.bias.* is missing'),
    ],
    ids=str,
)
def test_another_model_than_the_files_is_refused(
    folders: Mapping[str, pathlib.Path],
    monkeypatch: pytest.MonkeyPatch,
    changes: dict,
    message: str,
) -> None:
    reads = Reads(monkeypatch)
    model = tiny.model(position=Rotary(), **changes)
    with pytest.raises(CheckpointFileError, match=message):
        load(open_directory(folders['llama']), model, tiny.mesh())
    assert not reads.names


def test_a_value_that_is_no_number_is_refused(
    folders: Mapping[str, pathlib.Path], tmp_path
) -> None:
    name = 'model.norm.weight'
    array = open_directory(folders['llama']).read(name).copy()
    array[3] = np.nan
    rewritten(folders['llama'], tmp_path, {name: array})
    directory = open_directory(tmp_path)
    with pytest.raises(CheckpointFileError, match=r'model\.norm\.weight.*not finite.*\(3,\)'):
        load(directory, found_model(directory), tiny.mesh())


def test_nothing_is_written_over(folders: Mapping[str, pathlib.Path], tmp_path) -> None:
    (tmp_path / 'notes.txt').write_text('mine')
    with pytest.raises(ValueError, match='not an empty folder'):
        save(tmp_path, LLAMA, tiny.variables(LLAMA))
    assert [path.name for path in tmp_path.iterdir()] == ['notes.txt']
