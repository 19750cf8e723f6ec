from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.evals import forward
from nope.evals.forward import Means
from nope.model import Transformer
from tests import tiny

T = 12
WINDOWS = 5
BLOCKS = tiny.tokens(WINDOWS, T + 1)
CAP = 2.0  # of logits
MODEL = tiny.model(logit_cap=CAP)


def measured(batch_size: int, entropy: bool = True) -> Means:
    return forward.means(
        MODEL,
        tiny.varied_lam(MODEL),
        BLOCKS,
        mesh=tiny.mesh(),
        batch_size=batch_size,
        entropy=entropy,
    )


@functools.cache
def direct() -> tuple[np.ndarray, np.ndarray]:
    """Loss [windows, T] and entropy [L, windows, N, T] of the model, one window at a time."""

    @jax.jit
    def one(block: jax.Array) -> tuple[jax.Array, jax.Array]:
        output = Transformer(MODEL).apply(tiny.varied_lam(MODEL), block[None, :-1], entropy=True)
        logits_TV = CAP * jnp.tanh((output.hidden @ output.head)[0] / CAP)
        nll_T = -jax.nn.log_softmax(logits_TV)[jnp.arange(len(block) - 1), block[1:]]
        return nll_T, output.entropy[:, 0]

    found = [jax.device_get(one(block)) for block in BLOCKS]
    loss, entropy = zip(*found, strict=True)
    return np.stack(loss).astype(np.float64), np.stack(entropy, axis=1).astype(np.float64)


@pytest.mark.parametrize('batch_size', [2, 100])
def test_means_are_those_of_every_window_alone(batch_size: int) -> None:
    """Whatever the batch, and however many windows of weight 0 fill up the last one."""
    found, (loss, entropy) = measured(batch_size), direct()
    assert found.windows == WINDOWS
    np.testing.assert_allclose(found.loss, loss.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.loss_std, loss.std(axis=0), rtol=1e-3, atol=1e-4)
    assert found.entropy is not None
    np.testing.assert_allclose(found.entropy, entropy.mean(axis=1), rtol=1e-5, atol=1e-6)


def test_means_are_the_same_on_many_devices() -> None:
    """Five windows on four batch shards, heads over two."""
    mesh = sharding.make_mesh(sharding.MeshConfig(data=2, fsdp=2, tensor=2))
    spread = tiny.spread(tiny.varied_lam(MODEL), MODEL, mesh)
    found = forward.means(MODEL, spread, BLOCKS, mesh=mesh, batch_size=100, entropy=True)
    expected = measured(100)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-5)
    np.testing.assert_allclose(found.entropy, expected.entropy, rtol=1e-5, atol=1e-6)
