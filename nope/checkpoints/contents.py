"""Contents of one Orbax checkpoint: composed and sealed when it is saved, verified when it is read.

A checkpoint has one item `arrays`, a tree of `params`, `lam` and `opt_state`. Each can be read
alone; as items of their own they would make a save start three times as late. It has three JSON
documents: `data` (examples consumed), `config` (the run) and `checksums` of every array, of the
other two documents and of itself. A search of lambda saves `lam` and `opt_state`, and the checksums
of its base model, whose weights are saved with the run that trained them. Orbax notices an
interrupted save; it does not notice bytes that change afterwards. The checksums do.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from nope.checkpoints.errors import CheckpointError, OtherRunError
from nope.identity import digest, first_difference
from nope.runtime import processes
from nope.runtime.errors import brief
from nope.runtime.libraries import ocp

log = logging.getLogger(__name__)

ARRAYS = 'arrays'
BASE = 'base'  # in `checksums`: of the base model's weights, where they are saved elsewhere
JSON_ITEMS = ('data', 'config', 'checksums')
SEAL = 'of_these'
STEP = 'step'  # in `data`: a checkpoint's folder may have been renamed
# Bytes from which each device writes a part of a replicated array. Orbax's own number is 0, with
# which XLA compiles a slice of every shape for every device at the first save.
LEAST_PART = 1 << 22

Arrays = Mapping[str, Any]  # name -> a tree of arrays, as `params`


def arrays_handler() -> Any:
    """Orbax handler of a tree of arrays: small replicated ones are written by one device."""
    types = ocp.type_handlers
    arrays = types.ArrayHandler(min_slice_bytes_for_replica_parallel=LEAST_PART)
    others = [(kind, types.get_type_handler(kind)) for kind in (int, float, np.number, np.ndarray)]
    registry = types.create_type_handler_registry((jax.Array, arrays), *others)
    return ocp.PyTreeCheckpointHandler(type_handler_registry=registry)


class Contents:
    """Arrays, JSON documents and checksums of the checkpoints of one run.

    config: JSON-able description of the run; a checkpoint with another one is refused.
    """

    def __init__(self, folder: epath.Path, config: Mapping[str, Any]) -> None:
        self._folder, self._config = folder, dict(config)
        self._base: dict[str, int] = {}

    def stand_on(self, base: Arrays) -> None:
        """Sets the base model: arrays that the saved ones belong to and that are saved elsewhere.

        Every save keeps their checksums. A checkpoint with other ones is refused.
        """
        self._base = checksums(base)

    def composed(self, step: int, arrays: Arrays, data: Mapping[str, Any]) -> ocp.args.Composite:
        """Orbax save arguments of a checkpoint: its arrays and its sealed documents."""
        documents = {'data': {**data, STEP: step}, 'config': self._config}
        sums: dict[str, Any] = {ARRAYS: checksums(arrays)}
        if self._base:
            sums[BASE] = self._base
        sums |= {name: digest(document) for name, document in documents.items()}
        documents['checksums'] = _sealed(sums)
        items = {name: ocp.args.JsonSave(document) for name, document in documents.items()}
        return ocp.args.Composite(**{ARRAYS: ocp.args.PyTreeSave(arrays)}, **items)

    def read(self, step: int, target: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arrays of `target` and the data position, each as it was saved.

        What each process reads by itself is read by all of them, or an error everywhere, before
        they compute the checksums together.
        """
        restored, found = processes.together(
            functools.partial(self._parts, step, target), f'reading step {step}'
        )
        expected, sums = found['checksums'][ARRAYS], checksums(restored)
        wrong = sorted(k for k in sums if expected.get(k) != sums[k])
        if wrong:
            raise CheckpointError(
                f'checkpoint of step {step} in {self._folder} differs from what was saved in '
                f'{", ".join(wrong[:3])}{" ..." if len(wrong) > 3 else ""}'
            )
        return restored, found['data']

    def _parts(self, step: int, target: Arrays) -> tuple[Any, dict[str, Any]]:
        """This process's parts of the arrays, not verified, and the documents, which are."""
        found = self.documents(step)
        different = first_difference(self._config, found['config'])
        if different:
            raise OtherRunError(
                f'the checkpoint of step {step} in {self._folder} is of another run: {different}'
            )
        saved_at = found['data'].pop(STEP, step)
        if saved_at != step:
            raise CheckpointError(
                f'the checkpoint in {self._folder / str(step)} was saved at step {saved_at}'
            )
        self._check_arrays(step, target, found['checksums'])
        asked = ocp.args.PyTreeRestore(
            target,
            restore_args=ocp.checkpoint_utils.construct_restore_args(target),
            partial_restore=True,  # what else was saved is left where it is
        )
        return self._load(step, {ARRAYS: asked})[ARRAYS], found

    def _check_arrays(self, step: int, target: Arrays, sums: Mapping[str, Any]) -> None:
        """OtherRunError unless the checkpoint has `target`'s collections and the base model set."""
        saved, base = sums[ARRAYS], sums.get(BASE, {})
        lacking = [name for name in target if not any(_is_in(name, path) for path in saved)]
        if lacking:
            elsewhere = any(_is_in(lacking[0], path) for path in base)
            raise OtherRunError(
                f'the checkpoint of step {step} in {self._folder} has no {", ".join(lacking)}'
                + (': a search is saved without its base model' if elsewhere else '')
            )
        different = [path for path, value in self._base.items() if base.get(path) != value]
        if different:
            raise OtherRunError(
                f'the checkpoint of step {step} in {self._folder} belongs to another base model, '
                f'which differs in {", ".join(different[:3])}'
                f'{" ..." if len(different) > 3 else ""}; move that folder away to search again '
                'with this one'
            )

    def documents(self, step: int) -> dict[str, dict[str, Any]]:
        """The JSON documents of a checkpoint, as they were saved."""
        found = self._load(step, {name: ocp.args.JsonRestore() for name in JSON_ITEMS})
        sums = found['checksums']
        wrong = [name for name in ('data', 'config') if sums.get(name) != digest(found[name])]
        if sums != _sealed({k: v for k, v in sums.items() if k != SEAL}):
            wrong.append('checksums')
        if wrong:
            raise CheckpointError(
                f'checkpoint of step {step} in {self._folder}: the documents {", ".join(wrong)} '
                'differ from what was saved'
            )
        return {name: found[name] for name in JSON_ITEMS}

    def _load(self, step: int, asked: Mapping[str, Any]) -> Any:
        """Items of a checkpoint. A failed read is tried once more: storage may fail for a
        moment."""
        try:
            return self._load_once(step, asked)
        except Exception as error:  # Orbax's, TensorStore's or the system's
            log.warning('reading step %d of %s once more: %s', step, self._folder, brief(error))
            return self._load_once(step, asked)

    def _load_once(self, step: int, asked: Mapping[str, Any]) -> Any:
        """Each process reads what its devices need and waits for no other, so that what one of them
        cannot read does not leave the rest waiting."""
        alone = ocp.options.MultiprocessingOptions(
            primary_host=None,
            active_processes={processes.index()},
            barrier_sync_key_prefix=f'process{processes.index()}',
        )
        handler = ocp.CompositeCheckpointHandler()
        with ocp.Checkpointer(handler, multiprocessing_options=alone) as checkpointer:
            return checkpointer.restore(self._folder / str(step), args=ocp.args.Composite(**asked))


def _is_in(name: str, path: str) -> bool:
    """Whether a leaf of `checksums` lies in the collection `name`."""
    return path.startswith(jax.tree_util.keystr((jax.tree_util.DictKey(name),)))


def _sealed(sums: dict[str, Any]) -> dict[str, Any]:
    """Checksums with one of their own."""
    return sums | {SEAL: digest(sums)}


def checksums(tree: Any) -> dict[str, int]:
    """Leaf path -> a 32-bit checksum of its bits, computed where the leaf lives.

    The sum over elements of bits * (2 * index + 1), modulo 2^32. Integer addition gives the same
    result in any order and on any sharding. An odd factor is invertible, so no single changed
    element can hide.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    sums = jax.device_get(_checksums([leaf for _, leaf in leaves]))
    return {
        jax.tree_util.keystr(path): int(value)
        for (path, _), value in zip(leaves, sums, strict=True)
    }


def _checksum(leaf: jax.Array) -> jax.Array:
    unsigned = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}[leaf.dtype.itemsize]
    bits = jax.lax.bitcast_convert_type(leaf, unsigned).astype(jnp.uint32)
    weight = jnp.uint32(1)
    stride = 1
    for axis in reversed(range(bits.ndim)):  # row-major index without a reshape
        index = jax.lax.broadcasted_iota(jnp.uint32, bits.shape, axis)
        weight = weight + index * jnp.uint32((2 * stride) % 2**32)
        stride *= bits.shape[axis]
    return jnp.sum(bits * weight, dtype=jnp.uint32)


# One program for all leaves of a tree.
_checksums = jax.jit(functools.partial(jax.tree.map, _checksum))
