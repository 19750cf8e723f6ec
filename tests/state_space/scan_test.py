"""Mamba-2's chunked scan against its recurrence, and its convolution."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.state_space import causal_convolution, chunked_scan
from tests.state_space.recurrence import recurrent_scan


class Inputs(NamedTuple):
    x_BTNH: jax.Array
    dt_BTN: jax.Array
    a_N: jax.Array
    b_BTKE: jax.Array
    c_BTKE: jax.Array


def make_inputs(B: int, T: int, N: int, K: int, H: int = 8, E: int = 16, seed: int = 0) -> Inputs:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    return Inputs(
        normal(B, T, N, H),
        jax.nn.softplus(normal(B, T, N)),
        -jnp.exp(normal(N)),
        normal(B, T, K, E),
        normal(B, T, K, E),
    )


def make_segments(B: int, T: int) -> jax.Array:
    """Documents of several lengths; the ids of the first two come again."""
    rng = np.random.default_rng(1)
    runs_BT = np.cumsum(rng.random((B, T)) < 0.1, axis=1)
    return jnp.asarray(runs_BT % 3, jnp.int32)


@pytest.mark.parametrize('begun', [False, True], ids=['empty', 'begun'])
@pytest.mark.parametrize('packed', [False, True], ids=['whole', 'packed'])
@pytest.mark.parametrize(
    ('T', 'N', 'K', 'chunk'), [(50, 4, 4, 16), (64, 4, 2, 16), (33, 6, 1, 128), (5, 2, 1, 1)]
)
def test_chunks_are_the_recurrence(
    T: int, N: int, K: int, chunk: int, packed: bool, begun: bool
) -> None:
    """Values, the last state and the gradients of every input."""
    inputs = make_inputs(2, T, N, K)
    rng = np.random.default_rng(2)
    state = jnp.asarray(rng.normal(size=(2, N, 8, 16)), jnp.float32) if begun else None
    segments = make_segments(2, T) if packed else None
    weights = jnp.asarray(rng.normal(size=inputs.x_BTNH.shape), jnp.float32)

    def total(scan: Any, inputs: Inputs, state: Any) -> tuple[jax.Array, Any]:
        y, last = scan(*inputs, segments_BT=segments, state_BNHE=state)
        return jnp.sum(weights * y) + jnp.sum(jnp.sin(last)), (y, last)

    def results(scan: Any) -> Any:
        wanted = (0, 1) if begun else (0,)
        gradients = jax.grad(functools.partial(total, scan), wanted, has_aux=True)
        return jax.jit(gradients)(inputs, state)

    grads, outputs = results(functools.partial(chunked_scan, chunk=chunk))
    want_grads, want_outputs = results(recurrent_scan)
    for found, expected, bound in ((outputs, want_outputs, 1e-5), (grads, want_grads, 1e-4)):
        pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
        for got, want in pairs:
            np.testing.assert_allclose(got, want, rtol=0, atol=bound * np.abs(want).max())


def test_a_document_does_not_see_the_one_before() -> None:
    """The scan of packed documents is that of each alone."""
    inputs = make_inputs(1, 40, 4, 2)
    segments = jnp.asarray([[7] * 13 + [2] * 27])
    y, state = chunked_scan(*inputs, segments_BT=segments, chunk=8)

    def part(begin: int, end: int) -> Inputs:
        return Inputs(*(z[:, begin:end] if z.ndim > 1 else z for z in inputs))

    first, _ = recurrent_scan(*part(0, 13))
    second, last = recurrent_scan(*part(13, 40))
    np.testing.assert_allclose(y, jnp.concatenate([first, second], axis=1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(state, last, rtol=1e-5, atol=1e-5)


def test_a_sequence_goes_on_from_its_state() -> None:
    inputs = make_inputs(2, 30, 4, 2)
    whole, last = chunked_scan(*inputs, chunk=8)
    begin, state = chunked_scan(*(z[:, :11] if z.ndim > 1 else z for z in inputs), chunk=8)
    rest = (z[:, 11:] if z.ndim > 1 else z for z in inputs)
    end, again = recurrent_scan(*rest, state_BNHE=state)
    np.testing.assert_allclose(jnp.concatenate([begin, end], axis=1), whole, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(again, last, rtol=1e-5, atol=1e-5)


def test_long_decays_give_numbers() -> None:
    """exp(l_j - l_i) of hidden pairs is infinite here, in values and gradients."""
    inputs = make_inputs(1, 64, 2, 1)._replace(a_N=jnp.asarray([-40.0, -1e-6]))

    def total(inputs: Inputs) -> jax.Array:
        return jnp.sum(chunked_scan(*inputs, chunk=32)[0])

    value, grads = jax.value_and_grad(total)(inputs)
    assert all(np.all(np.isfinite(z)) for z in (value, *grads))


def test_bfloat16_sums_in_float32() -> None:
    inputs = make_inputs(2, 256, 4, 2)
    half = Inputs(*(z.astype(jnp.bfloat16) for z in inputs))
    found = chunked_scan(*half)
    expected = recurrent_scan(*(z.astype(jnp.float32) for z in half))
    assert [z.dtype for z in found] == [jnp.bfloat16, jnp.float32]
    for got, want in zip(found, expected, strict=True):
        error = np.abs(np.asarray(got, np.float32) - want)
        assert error.max() < 3e-3 * np.abs(want).max()  # in bfloat16 4e-3


def test_memory_is_linear_in_length() -> None:
    """Forward and backward, and a chunk's weights are not kept: four times as much."""

    def temporary(T: int) -> int:
        def total(inputs: Inputs) -> jax.Array:
            return jnp.sum(chunked_scan(*inputs)[0])

        inputs = jax.eval_shape(lambda: make_inputs(1, T, 8, 1, 32, 32))
        compiled = jax.jit(jax.grad(total)).lower(inputs).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporary(8192) < 2.3 * temporary(4096)
    assert temporary(8192) < 32 * 2**20


@pytest.mark.parametrize('packed', [False, True])
def test_convolution(packed: bool) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(2, 12, 5)), rng.normal(size=(4, 5))
    before = rng.normal(size=(2, 3, 5))
    segments = np.asarray([[0] * 12, [0] * 5 + [1] * 2 + [0] * 5])
    runs = np.asarray([[0] * 12, [0] * 5 + [1] * 2 + [2] * 5])
    want = np.zeros_like(x)
    for row, t, w in np.ndindex(2, 12, 4):
        at = t - 3 + w
        if packed and runs[row, max(at, 0)] != runs[row, t]:
            continue
        value = x[row, at] if at >= 0 else before[row, at + 3]
        want[row, t] += weight[w] * value
    got = causal_convolution(
        jnp.asarray(x, jnp.float32),
        jnp.asarray(weight, jnp.float32),
        segments_BT=jnp.asarray(segments) if packed else None,
        before_BSC=jnp.asarray(before, jnp.float32),
    )
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_convolution_in_half_precision() -> None:
    """Sums in float32, also where the weights are float32."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(2, 12, 5)), jnp.bfloat16)
    weight = jnp.asarray(rng.normal(size=(4, 5)), jnp.float32)
    got = causal_convolution(x, weight)
    want = causal_convolution(x.astype(jnp.float32), weight)
    assert got.dtype == jnp.bfloat16
    np.testing.assert_array_equal(got, want.astype(jnp.bfloat16))
