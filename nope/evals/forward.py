"""One pass of a model over evaluation blocks: streaming means by position, O(T) memory."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import losses, sharding
from nope.evals import batching, bootstrap
from nope.model import AttentionShape, ModelConfig, apply
from nope.variables import Variables

Progress = Callable[[Iterable], Iterable]

# Of sums whose factors accelerators round to fewer bits by default.
_EXACT = jax.lax.Precision.HIGHEST


class WindowSums(flax.struct.PyTreeNode):
    """Sums over windows: loss and its square [T]; entropy and attention shape [L, N, T], or None.
    Every resample has the loss, and the mean entropy over layers and heads, [R, T] or None."""

    loss: Any
    loss_square: Any
    entropy: Any
    shape: Any = None
    resampled_loss: Any = None
    resampled_entropy: Any = None


@dataclasses.dataclass(frozen=True)
class Means:
    """Means over windows, float64: loss and loss_std [T] nats, entropy [L, N, T] nats or None,
    shape [L, N, T] each or None. Resamples of the windows have resampled_loss and resampled_entropy
    [R, T] or None; the latter is the mean over layers and heads."""

    loss: np.ndarray
    loss_std: np.ndarray
    entropy: np.ndarray | None
    windows: int
    shape: AttentionShape | None = None
    resampled_loss: np.ndarray | None = None
    resampled_entropy: np.ndarray | None = None


def means(
    config: ModelConfig,
    variables: Variables,
    blocks: np.ndarray,
    *,
    mesh: Mesh,
    batch_size: int,
    entropy: bool,
    span: int | None = None,
    of_document: np.ndarray | None = None,
    progress: Progress = iter,
) -> Means:
    """Loss and entropy by position, averaged over blocks [windows, T + 1] int32.

    Sums of a batch are made on the devices; batches are added on the host in float64 while the next
    one runs. Loss k is that of predicting token k + 1 from tokens 0 .. k. Entropy k is that of the
    query at token k over its k + 1 keys. span: latest keys that the attention shape sums up;
    None for no shape. of_document: [windows], the document of each, for resamples
    (nope.evals.bootstrap). ValueError where a mean loss is not finite, for token ids outside the
    vocabulary and for a `batch_size` below 1.
    """
    if not len(blocks):
        raise ValueError('no evaluation blocks were given')
    batching.check_ids(blocks, config.vocab_size)
    if batch_size < 1:
        raise ValueError(f'batch_size is {batch_size}; it must be at least 1')
    total: WindowSums | None = None
    pending: WindowSums | None = None
    counts_WR = None if of_document is None else bootstrap.of_windows(of_document)
    parts = sharding.batch_parts(mesh)
    size = -(-min(batch_size, len(blocks)) // parts) * parts  # equal batches that the mesh divides
    place = functools.partial(sharding.put, sharding=sharding.rows(mesh))
    for start in progress(range(0, len(blocks), size)):
        batch = blocks[start : start + size]
        missing = size - len(batch)
        # The last one is padded with windows of weight 0, which are in no resample.
        weights = np.concatenate([np.ones(len(batch)), np.zeros(missing)]).astype(np.float32)
        batch = np.concatenate([batch, np.repeat(batch[:1], missing, axis=0)])
        with sharding.use(mesh):
            counted = None
            if counts_WR is not None:
                counts_BR = counts_WR[start : start + size]
                counted = place(np.pad(counts_BR, ((0, missing), (0, 0))))
            given = (variables, place(batch), place(weights))
            sums = batch_sums(config, entropy, *given, span, counted)
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
    resampled: list[np.ndarray | None] = [None, None]
    if counts_WR is not None:
        sums = (total.resampled_loss, total.resampled_entropy)
        resampled = [bootstrap.means(sums_RT, counts_WR) for sums_RT in sums]
    return Means(mean.loss, deviation, mean.entropy, len(blocks), mean.shape, *resampled)


@functools.partial(jax.jit, static_argnums=(0, 1, 5))
def batch_sums(
    config: ModelConfig,
    entropy: bool,
    variables: Variables,
    blocks: jax.Array,
    weights_B: jax.Array,
    span: int | None = None,
    counts_BR: jax.Array | None = None,
) -> WindowSums:
    """Sums over the windows of one batch [B, T + 1], each counted `weights_B` times, and of every
    resample `counts_BR` times."""
    output = apply(config, variables, blocks[:, :-1], entropy=entropy, span=span)
    nll_BT = losses.token_loss(output.hidden, output.head, blocks[:, 1:], cap=config.logit_cap)

    def over_windows(x_BT: jax.Array) -> jax.Array:
        return jnp.einsum('BT,B->T', x_BT, weights_B, precision=_EXACT)

    def by_layer(x_LBNT: jax.Array) -> jax.Array:
        return jnp.einsum('LBNT,B->LNT', x_LBNT, weights_B, precision=_EXACT)

    def by_resample(x_BT: jax.Array | None) -> jax.Array | None:
        if x_BT is None or counts_BR is None:
            return None
        return jnp.einsum('BT,BR->RT', x_BT, counts_BR, precision=_EXACT)

    # Each None where it was not asked for.
    entropy_BT = None if output.entropy is None else output.entropy.mean(axis=(0, 2))
    return WindowSums(
        loss=over_windows(nll_BT),
        loss_square=over_windows(jnp.square(nll_BT)),
        entropy=jax.tree.map(by_layer, output.entropy),
        shape=jax.tree.map(by_layer, output.shape),
        resampled_loss=by_resample(nll_BT),
        resampled_entropy=by_resample(entropy_BT),
    )


def _add(total: WindowSums | None, sums: WindowSums) -> WindowSums:
    fetched = jax.tree.map(lambda x: np.asarray(x, np.float64), sharding.fetch(sums))
    return fetched if total is None else jax.tree.map(np.add, total, fetched)
