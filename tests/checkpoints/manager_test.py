from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from nope import sharding
from nope.checkpoints import contents
from nope.checkpoints.contents import checksums
from nope.checkpoints.errors import CheckpointError, UnwritableError
from nope.checkpoints.manager import Checkpoints, Restored
from nope.training.optim import OptimizerConfig
from nope.training.state import fresh_state
from nope.variables import COLLECTIONS, Variables
from tests import tiny

OPTIMIZER = OptimizerConfig(learning_rate=1e-3, decay_steps=10)
IDENTITY = {'model': {'width': 32, 'position': {'type': 'NoPE'}}, 'seed': 0}


def arrays_at(step: int) -> dict[str, Any]:
    """`params`, `lam` and `opt_state`, every array another at another step."""
    state, frozen = fresh_state(tiny.variables(), OPTIMIZER, tiny.mesh())
    arrays = state.arrays(frozen)
    return jax.tree.map(lambda leaf: leaf + jnp.asarray(step, leaf.dtype), arrays)


def variables_at(step: int) -> Variables:
    return {name: arrays_at(step)[name] for name in COLLECTIONS}


def open_in(folder: pathlib.Path, identity: Any = None, **options: Any) -> Checkpoints:
    return Checkpoints(folder / 'checkpoints', identity or IDENTITY, **options)


def write(folder: pathlib.Path, *steps: int, **options: Any) -> None:
    with open_in(folder, **options) as checkpoints:
        for step in steps:
            checkpoints.save(step, arrays_at(step), {'examples': 10 * step})


def read(folder: pathlib.Path) -> Restored | None:
    with open_in(folder) as checkpoints:
        return checkpoints.restore(arrays_at(0))


def assert_is(found: Restored, step: int) -> None:
    assert found.step == step
    tiny.assert_same(found.arrays, arrays_at(step))


def flip_bytes(item: pathlib.Path) -> None:
    """Flips the bytes in the middle of every file that holds array data."""
    for path in (p for p in item.rglob('d/*') if p.is_file()):
        content = bytearray(path.read_bytes())
        middle = len(content) // 2
        content[middle : middle + 64] = (byte ^ 0xFF for byte in content[middle : middle + 64])
        path.write_bytes(content)


def test_what_a_killed_save_had_yet_to_remove_is_removed(tmp_path: pathlib.Path) -> None:
    """All of it, or what a removal left of it."""
    write(tmp_path, 1, 2, 3, 4, 5, 6, keep=6)
    folder = tmp_path / 'checkpoints'
    for path in (folder / '3').rglob('*'):
        if path.is_file():
            path.unlink()
    with open_in(tmp_path, keep=2, permanent=(2,)) as checkpoints:
        checkpoints.remove_old()
        assert checkpoints.steps() == [2, 5, 6]
    assert {path.name for path in folder.iterdir()} == {'2', '5', '6'}
    found = read(tmp_path)
    assert found is not None
    assert_is(found, 6)


def test_nothing_is_restored_where_nothing_was_saved(tmp_path: pathlib.Path) -> None:
    assert read(tmp_path) is None


def test_what_was_saved_comes_back_bit_for_bit(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 3)
    found = read(tmp_path)
    assert found is not None
    assert_is(found, 3)
    assert found.data == {'examples': 30}
    placed, wanted = (
        jax.tree.map(lambda x: x.sharding, arrays['params'])
        for arrays in (found.arrays, arrays_at(0))
    )
    assert placed == wanted


def test_parameters_are_restored_without_the_optimizer(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1, 2)
    with open_in(tmp_path) as checkpoints:
        for step, wanted in ((None, 2), (1, 1)):
            found = checkpoints.read(tiny.variables(), step)
            tiny.assert_same(found, variables_at(wanted))
        with pytest.raises(CheckpointError, match=r'no checkpoint of step 7 .* \[1, 2\]'):
            checkpoints.read(tiny.variables(), 7)


def test_lambda_is_restored_alone(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1)
    lam = tiny.variables()['lam']
    with open_in(tmp_path) as checkpoints:
        found = checkpoints.read({'lam': lam})
        tiny.assert_same(found, {'lam': variables_at(1)['lam']})
        with pytest.raises(CheckpointError, match='checkpoint of step 1'):
            checkpoints.read({'lam': {**lam, 'tail': lam['head']}})


def test_the_newest_and_the_permanent_ones_stay(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1, 2, 3, 4, 5, keep=2, permanent=(2,))
    with open_in(tmp_path, keep=2, permanent=(2,)) as checkpoints:
        assert checkpoints.steps() == [2, 4, 5]


def test_small_replicated_arrays_are_written_whole_and_large_ones_in_parts(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight devices; either comes back onto one of them, as what was saved in parts before does."""
    copies = sharding.replicated(sharding.make_mesh(sharding.MeshConfig(data=8)))
    large = np.arange(64 * 40, dtype=np.float32).reshape(64, 40)
    arrays = {'params': {'large': jax.device_put(large, copies)}}
    arrays['params'] |= {'small': jax.device_put(large[:16], copies)}
    monkeypatch.setattr(contents, 'LEAST_PART', 8 * 40 * 4)
    with open_in(tmp_path) as checkpoints:
        checkpoints.save(1, arrays, {})
    with ocp.PyTreeCheckpointer() as written:
        found = written.metadata(tmp_path / 'checkpoints/1/arrays').item_metadata['params']
    assert found['large'].storage.chunk_shape == (8, 40)
    assert found['small'].storage.chunk_shape == (16, 40)
    with open_in(tmp_path) as checkpoints:
        restored = checkpoints.restore(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), arrays))
    assert restored is not None
    tiny.assert_same(restored.arrays, arrays)


def test_a_step_is_saved_once(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1)
    write(tmp_path, 1, 2)
    with open_in(tmp_path) as checkpoints:
        assert checkpoints.steps() == [1, 2]


def test_flipped_bytes_are_noticed(tmp_path: pathlib.Path) -> None:
    """The checkpoint before is taken, and the damaged one is set aside."""
    write(tmp_path, 1, 2)
    flip_bytes(tmp_path / 'checkpoints' / '2' / 'arrays')
    found = read(tmp_path)
    assert found is not None
    assert_is(found, 1)
    assert (tmp_path / 'damaged' / '2').is_dir()
    with open_in(tmp_path) as checkpoints:
        assert checkpoints.steps() == [1]
        checkpoints.save(2, arrays_at(2), {})  # the step can be made again


@pytest.mark.parametrize('wrapped', [False, True])
def test_a_device_without_memory_is_no_damage(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, wrapped: bool
) -> None:
    write(tmp_path, 1, 2)
    loaded = contents.Contents._load_once

    def load(self: contents.Contents, step: int, *others: Any) -> Any:
        if step == 1:
            return loaded(self, step, *others)
        short = jax.errors.JaxRuntimeError('RESOURCE_EXHAUSTED: out of memory allocating 3 GiB')
        if wrapped:
            raise ValueError('the arrays could not be read') from short
        raise short

    monkeypatch.setattr(contents.Contents, '_load_once', load)
    with pytest.raises(CheckpointError, match=r'step 2 .* there is not enough memory'):
        read(tmp_path)
    monkeypatch.undo()
    found = read(tmp_path)
    assert found is not None
    assert_is(found, 2)


@pytest.mark.parametrize(
    ('item', 'old', 'new'),
    [
        ('data', b'"examples": 20', b'"examples": 21'),
        ('config', b'"seed": 0', b'"seed": 4'),
        ('checksums', b'"of_these": "', b'"of_these": "0'),
    ],
)
def test_a_changed_document_is_damage(
    tmp_path: pathlib.Path, item: str, old: bytes, new: bytes
) -> None:
    """It is still a document, and not that of another run."""
    write(tmp_path, 1, 2)
    path = tmp_path / 'checkpoints' / '2' / item / 'metadata'
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    with (
        open_in(tmp_path) as checkpoints,
        pytest.raises(CheckpointError, match=f'documents {item}'),
    ):
        checkpoints.read(tiny.variables())
    found = read(tmp_path)
    assert found is not None
    assert_is(found, 1)


def test_checkpoints_of_something_else_stay_where_they_are(tmp_path: pathlib.Path) -> None:
    theirs = tmp_path / 'checkpoints' / '7'
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(theirs / 'default', {'weights': np.ones(3)})
    (theirs / '_CHECKPOINT_METADATA').write_text('{}')
    with pytest.raises(CheckpointError, match='7 is no checkpoint of this project'):
        read(tmp_path)
    assert (theirs / 'default').is_dir()


def test_what_cannot_be_written_is_said_and_costs_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1)
    message = r'that of step 2 .* could not be written .* no room\. Those of steps \[1\] are as'
    with pytest.raises(UnwritableError, match=message), open_in(tmp_path) as checkpoints:

        def fail(*_: object, **__: object) -> None:
            raise OSError('no room')

        monkeypatch.setattr(checkpoints._manager, 'save', fail)
        checkpoints.save(2, arrays_at(2), {})
    found = read(tmp_path)
    assert found is not None
    assert found.step == 1


def test_a_silently_changed_array_is_noticed(tmp_path: pathlib.Path) -> None:
    """Bytes that change in a way the format does not see: here, another checkpoint's array."""
    write(tmp_path, 1, 2)
    folder = tmp_path / 'checkpoints'
    (folder / '2' / 'arrays').rename(tmp_path / 'arrays')
    (folder / '1' / 'arrays').rename(folder / '2' / 'arrays')
    (tmp_path / 'arrays').rename(folder / '1' / 'arrays')
    with open_in(tmp_path) as checkpoints:
        for part in ('lam', 'params'):
            message = rf"differs from what was saved in \['{part}'\]"
            with pytest.raises(CheckpointError, match=message):
                checkpoints.read({part: tiny.variables()[part]})
    with pytest.raises(
        CheckpointError, match=r'none of the checkpoints of steps \[1, 2\] .* differs'
    ):
        read(tmp_path)
    assert sorted(p.name for p in (tmp_path / 'checkpoints').iterdir()) == ['1', '2']
    assert not (tmp_path / 'damaged').exists()


def test_an_interrupted_save_is_not_a_checkpoint(tmp_path: pathlib.Path) -> None:
    """A kill leaves a folder that is not committed."""
    write(tmp_path, 1)
    left = tmp_path / 'checkpoints' / '2.orbax-checkpoint-tmp-0' / 'arrays'
    left.mkdir(parents=True)
    (left / 'data').write_bytes(b'half')
    found = read(tmp_path)
    assert found is not None
    assert found.step == 1
    assert left.is_dir(), 'whoever reads changes nothing'
    with Checkpoints(tmp_path / 'checkpoints', IDENTITY, clean=True) as checkpoints:
        assert checkpoints.steps() == [1]
    assert not left.exists(), 'whoever writes has no use for it'


def test_storage_that_fails_for_a_while_costs_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be read nothing is called damaged; the next start reads the newest."""
    write(tmp_path, 1, 2)

    def fail(*_: object) -> None:
        raise OSError('input/output error')

    with monkeypatch.context() as patched, open_in(tmp_path) as checkpoints:
        patched.setattr(contents.Contents, '_load', fail)
        with pytest.raises(CheckpointError, match=r'nothing was changed .* input/output error'):
            checkpoints.restore(arrays_at(0))
    found = read(tmp_path)
    assert found is not None
    assert_is(found, 2)


def test_storage_that_fails_once_is_asked_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1, 2)
    with monkeypatch.context() as patched, open_in(tmp_path) as checkpoints:
        load, failures = contents.Contents._load_once, [OSError('stale file handle')]

        def load_once(*asked: Any) -> Any:
            if failures:
                raise failures.pop()
            return load(*asked)

        patched.setattr(contents.Contents, '_load_once', load_once)
        found = checkpoints.restore(arrays_at(0))
    assert found is not None
    assert_is(found, 2)
    assert not (tmp_path / 'damaged').exists()


def test_a_renamed_checkpoint_is_damage(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1, 2)
    folder = tmp_path / 'checkpoints'
    (folder / '2').rename(folder / '40')
    found = read(tmp_path)
    assert found is not None
    assert_is(found, 1)
    assert (tmp_path / 'damaged' / '40').is_dir()


def test_another_runs_checkpoint_is_refused_by_field(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1)
    other = {'model': {'width': 64, 'position': {'type': 'NoPE'}}, 'seed': 0}
    with open_in(tmp_path, other) as checkpoints:
        for restore in (checkpoints.restore, checkpoints.read):
            target = arrays_at(0) if restore == checkpoints.restore else tiny.variables()
            with pytest.raises(CheckpointError, match=r'model\.width is 64 here and 32 there'):
                restore(target)
    assert not (tmp_path / 'damaged').exists()


def test_a_checkpoint_moves_to_another_mesh_exactly(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1)
    mesh = sharding.make_mesh(sharding.MeshConfig(data=2, fsdp=2, tensor=2))
    spread = jax.tree.map(
        lambda leaf: jax.device_put(leaf, sharding.replicated(mesh)), tiny.variables()
    )
    embedding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('tensor', 'fsdp'))
    spread['params']['embedding'] = jax.device_put(spread['params']['embedding'], embedding)
    with open_in(tmp_path) as checkpoints:
        found = checkpoints.read(spread)
    tiny.assert_same(found, variables_at(1))
    assert found['params']['embedding'].sharding == embedding


def test_checksums_see_every_element_and_no_sharding() -> None:
    leaf = jax.random.normal(jax.random.key(0), (8, 4, 6))
    (expected,) = checksums({'a': leaf}).values()
    mesh = sharding.make_mesh(sharding.MeshConfig(fsdp=8))
    spread = jax.device_put(leaf, sharding.rows(mesh))
    assert checksums({'a': spread}) == {"['a']": expected}
    flat = np.asarray(leaf).ravel()
    for index in (0, 17, flat.size - 1):
        changed = flat.copy()
        changed.view(np.uint32)[index] ^= 1
        assert checksums({'a': jnp.asarray(changed.reshape(leaf.shape))})["['a']"] != expected
    assert checksums({'a': leaf[::-1]})["['a']"] != expected
    for dtype in (jnp.bfloat16, jnp.int32, jnp.uint8):
        whole = (100 * leaf).astype(dtype)
        other = whole.at[7, 3, 5].add(1)
        assert checksums({'a': whole}) != checksums({'a': other})


def test_a_folder_that_vanished_is_not_made_anew(tmp_path: pathlib.Path) -> None:
    message = 'the folder has vanished, or is another one than at the start'
    with pytest.raises(UnwritableError, match=message), open_in(tmp_path) as checkpoints:
        checkpoints.save(1, arrays_at(1), {})
        checkpoints.wait()
        (tmp_path / 'checkpoints').rename(tmp_path / 'away')
        checkpoints.save(2, arrays_at(2), {})
    assert not (tmp_path / 'checkpoints').exists()
    (tmp_path / 'away').rename(tmp_path / 'checkpoints')
    found = read(tmp_path)
    assert found is not None
    assert found.step == 1
