"""Mamba-2's scan and convolution against those of transformers' Nemotron-H."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.state_space import causal_convolution, chunked_scan
from tests.state_space.recurrence import recurrent_scan

torch = pytest.importorskip('torch')
stock = pytest.importorskip('transformers.models.nemotron_h.modeling_nemotron_h')

pytestmark = pytest.mark.peers
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(('T', 'K'), [(50, 1), (64, 2)])
def test_scan(T: int, K: int) -> None:
    """Also from a given state, and its steps softplus(dt + bias) within limits."""
    B, N, H, E = 2, 4, 8, 16
    x, dt, a = normal(B, T, N, H), normal(B, T, N), -np.exp(normal(N))
    b, c, bias = normal(B, T, K, E), normal(B, T, K, E), normal(N)
    state = normal(B, N, H, E)
    want, last = stock.mamba2_chunk_scan.__wrapped__(
        *map(torch.tensor, (x, dt, a, b, c)),
        chunk_size=16,
        dt_bias=torch.tensor(bias),
        dt_softplus=True,
        dt_limit=(0.05, 2.0),
        initial_states=torch.tensor(state),
        return_final_states=True,
    )
    steps = jnp.clip(jax.nn.softplus(dt + bias), 0.05, 2.0)
    arrays = tuple(map(jnp.asarray, (x, steps, a, b, c)))
    for scan in (recurrent_scan, chunked_scan):
        found = scan(*arrays, state_BNHE=jnp.asarray(state))
        for ours, theirs in zip(found, (want, last), strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-5 * theirs.abs().max().item())


def test_convolution() -> None:
    x, weight = normal(2, 12, 6), normal(4, 6)
    want = stock.causal_conv1d_fn.__wrapped__(
        torch.tensor(x).transpose(1, 2), torch.tensor(weight.T)
    ).transpose(1, 2)
    got = causal_convolution(jnp.asarray(x), jnp.asarray(weight))
    np.testing.assert_allclose(got, want.numpy(), atol=1e-6 * want.abs().max().item())
