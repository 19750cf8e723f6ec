"""One pass of a model over evaluation blocks: streaming means by position, O(T) memory."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import losses, sharding
from nope.evals import batching
from nope.model import AttentionShape, ModelConfig, apply
from nope.variables import Variables

Progress = Callable[[Iterable], Iterable]


class Sums(flax.struct.PyTreeNode):
    """Sums over windows: loss and its square [T]; entropy, and what there is of the attention's
    shape, [L, N, T] or None."""

    loss: Any
    loss_square: Any
    entropy: Any
    shape: Any = None


@dataclasses.dataclass(frozen=True)
class Means:
    """Means over windows, float64. loss, loss_std: [T] nats; entropy: [L, N, T] nats or None;
    shape: [L, N, T] each, or None."""

    loss: np.ndarray
    loss_std: np.ndarray
    entropy: np.ndarray | None
    windows: int
    shape: AttentionShape | None = None


def means(
    config: ModelConfig,
    variables: Variables,
    blocks: np.ndarray,
    *,
    mesh: Mesh,
    batch_size: int,
    entropy: bool,
    span: int | None = None,
    progress: Progress = iter,
) -> Means:
    """Loss and entropy by position, averaged over blocks [windows, T + 1] int32.

    Sums of a batch are made on the devices; batches are added on the host in float64 while
    the next one runs. Loss k is that of predicting token k + 1 from tokens 0 .. k; entropy k
    is that of the query at token k, which sees k + 1 keys. span: latest keys whose weight the shape
    of attention sums up; None for no shape. ValueError where a mean loss is not finite, for token
    ids outside the vocabulary and for a `batch_size` below 1.
    """
    if not len(blocks):
        raise ValueError('no evaluation blocks were given')
    batching.check_ids(blocks, config.vocab_size)
    if batch_size < 1:
        raise ValueError(f'batch_size is {batch_size}; it must be at least 1')
    total: Sums | None = None
    pending: Sums | None = None
    for batch, weights in progress(list(_batches(blocks, batch_size, mesh))):
        with sharding.use(mesh):
            place = functools.partial(sharding.put, sharding=sharding.rows(mesh))
            sums = batch_sums(config, entropy, variables, place(batch), place(weights), span)
        if pending is not None:
            total = _add(total, pending)
        pending = sums
    assert pending is not None
    total = _add(total, pending)
    mean = jax.tree.map(lambda sums: sums / len(blocks), total)
    wrong = np.flatnonzero(~np.isfinite(mean.loss))
    if wrong.size:
        raise ValueError(
            f'the mean loss over {len(blocks)} windows is {mean.loss[wrong[0]]} at position '
            f'{wrong[0] + 1}'
        )
    deviation = np.sqrt(np.maximum(mean.loss_square - mean.loss**2, 0.0))
    return Means(mean.loss, deviation, mean.entropy, len(blocks), mean.shape)


@functools.partial(jax.jit, static_argnums=(0, 1, 5))
def batch_sums(
    config: ModelConfig,
    entropy: bool,
    variables: Variables,
    blocks: jax.Array,
    weights_B: jax.Array,
    span: int | None = None,
) -> Sums:
    """Sums over the windows of one batch [B, T + 1], each counted `weights_B` times."""
    output = apply(config, variables, blocks[:, :-1], entropy=entropy, span=span)
    nll_BT = losses.token_loss(output.hidden, output.head, blocks[:, 1:], cap=config.logit_cap)

    def by_layer(x_LBNT: jax.Array) -> jax.Array:
        return jnp.einsum('LBNT,B->LNT', x_LBNT, weights_B)

    return Sums(
        loss=jnp.einsum('BT,B->T', nll_BT, weights_B),
        loss_square=jnp.einsum('BT,B->T', jnp.square(nll_BT), weights_B),
        # Each None where it was not asked for.
        entropy=jax.tree.map(by_layer, output.entropy),
        shape=jax.tree.map(by_layer, output.shape),
    )


def _batches(
    blocks: np.ndarray, batch_size: int, mesh: Mesh
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Equal batches that the mesh divides, the last one padded with windows of weight 0."""
    parts = sharding.batch_parts(mesh)
    size = -(-min(batch_size, len(blocks)) // parts) * parts
    for start in range(0, len(blocks), size):
        batch = blocks[start : start + size]
        missing = size - len(batch)
        weights = np.concatenate([np.ones(len(batch)), np.zeros(missing)]).astype(np.float32)
        yield np.concatenate([batch, np.repeat(batch[:1], missing, axis=0)]), weights


def _add(total: Sums | None, sums: Sums) -> Sums:
    fetched = jax.tree.map(lambda x: np.asarray(x, np.float64), sharding.fetch(sums))
    return fetched if total is None else jax.tree.map(np.add, total, fetched)
