"""Chunked cross-entropy is the plain one, in memory that does not hold all logits."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from nope import losses, sharding

B, T, D, V = 3, 37, 16, 50


def arrays(dtype: str = 'float32') -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    rng = np.random.default_rng(0)
    hidden_BTD = jnp.asarray(rng.standard_normal((B, T, D)), dtype)
    head_DV = jnp.asarray(rng.standard_normal((D, V)), dtype)
    targets_BT = jnp.asarray(rng.integers(0, V, (B, T)), jnp.int32)
    d_nll_BT = jnp.asarray(rng.standard_normal((B, T)), jnp.float32)
    return hidden_BTD, head_DV, targets_BT, d_nll_BT


def plain_loss(hidden_BTD, head_DV, targets_BT, cap=None):
    logits_BTV = hidden_BTD.astype(jnp.float32) @ head_DV.astype(jnp.float32)
    if cap is not None:
        logits_BTV = cap * jnp.tanh(logits_BTV / cap)
    logs_BTV = jax.nn.log_softmax(logits_BTV)
    return -jnp.take_along_axis(logs_BTV, targets_BT[..., None], axis=-1)[..., 0]


def pulled(loss, hidden, head, targets, d_nll):
    """(nll, gradients of hidden and head)."""

    def total(hidden, head):
        nll = loss(hidden, head, targets)
        return jnp.sum(nll * d_nll), nll

    function = jax.jit(jax.grad(total, argnums=(0, 1), has_aux=True))
    gradients, nll = function(hidden, head)
    return nll, *gradients


# 16 and 10 leave a ragged last chunk; 37 and more are the direct path.
@pytest.mark.parametrize(
    ('chunk', 'cap'),
    [
        *((chunk, None) for chunk in (None, 1, 10, 16, 37, 1000)),
        *((chunk, 4.0) for chunk in (10, 37)),
    ],
)
@pytest.mark.parametrize(('dtype', 'tolerance'), [('float32', 1e-5), ('bfloat16', 3e-2)])
def test_values_and_gradients(
    chunk: int | None, cap: float | None, dtype: str, tolerance: float
) -> None:
    inputs = arrays(dtype)

    def loss(*arguments):
        return losses.token_loss(*arguments, cap=cap, chunk=chunk)

    expected = pulled(functools.partial(plain_loss, cap=cap), *inputs)
    actual = pulled(loss, *inputs)
    assert actual[0].dtype == jnp.float32
    np.testing.assert_allclose(actual[0], expected[0], atol=1e-5, rtol=1e-5)
    for array, wanted in zip(actual[1:], expected[1:], strict=True):
        assert array.dtype == dtype
        error = np.abs(np.asarray(array, np.float64) - np.asarray(wanted, np.float64)).max()
        assert error <= tolerance * np.abs(np.asarray(wanted, np.float64)).max()


def test_a_cap_bounds_logits_and_keeps_their_order() -> None:
    hidden_BTD, head_DV, targets_BT, _ = arrays()
    plain, capped = (losses.logits(hidden_BTD, head_DV, cap) for cap in (None, 2.0))
    assert float(jnp.abs(plain).max()) > 8 and float(jnp.abs(capped).max()) <= 2
    np.testing.assert_allclose(capped, 2 * np.tanh(np.asarray(plain) / 2), atol=1e-5)
    nll_BT, best_BT = losses.token_choices(hidden_BTD, head_DV, targets_BT, cap=2.0)
    expected = plain_loss(hidden_BTD, head_DV, targets_BT, cap=2.0)
    np.testing.assert_allclose(nll_BT, expected, atol=1e-5)
    np.testing.assert_array_equal(best_BT, capped.argmax(-1))


@pytest.mark.parametrize('chunk', [10, T])
def test_uniform_logits_cost_log_v(chunk: int) -> None:
    hidden, _, targets, _ = arrays()
    nll = losses.token_loss(hidden, jnp.zeros((D, V)), targets, chunk=chunk)
    np.testing.assert_allclose(nll, math.log(V), rtol=1e-6)


@pytest.mark.parametrize('chunk', [10, T])
def test_large_logits_stay_finite(chunk: int) -> None:
    hidden, head, targets, d_nll = arrays()

    def loss(*arguments):
        return losses.token_loss(*arguments, chunk=chunk)

    for array in pulled(loss, 1e4 * hidden, head, targets, d_nll):
        assert np.all(np.isfinite(array))


def flops(argnums: int | tuple[int, ...], chunk: int) -> float:
    """FLOPs of the gradient; the body of a loop is counted once."""
    hidden, head, targets, d_nll = arrays()

    def total(hidden, head):
        return jnp.sum(losses.token_loss(hidden, head, targets, chunk=chunk) * d_nll)

    compiled = jax.jit(jax.grad(total, argnums=argnums)).lower(hidden, head).compile()
    return compiled.cost_analysis()['flops']


@pytest.mark.parametrize('chunk', [10, T])
def test_a_frozen_head_costs_no_gradient(chunk: int) -> None:
    product = 2 * B * chunk * D * V
    assert flops((0, 1), chunk) - flops(0, chunk) >= product
    # Forward, backward, and in chunks the logits once more; the softmax adds its share.
    products = 2 if chunk == T else 3
    assert flops(0, chunk) < (products + 1) * product


@pytest.mark.parametrize('chunk', [pytest.param(10, marks=pytest.mark.slow), 16, 40])
def test_every_device_of_a_sequence_has_its_share_of_every_chunk(chunk: int) -> None:
    """As where the batch is split: what a chunk's logits cost does not depend on the axis."""
    rng = np.random.default_rng(0)
    hidden = jnp.asarray(rng.standard_normal((8, 40, D)), 'float32')
    _, head, _, _ = arrays()
    targets = jnp.asarray(rng.integers(0, V, (8, 40)), jnp.int32)
    d_nll = jnp.asarray(rng.standard_normal((8, 40)), 'float32')
    expected = pulled(plain_loss, hidden, head, targets, d_nll)
    costs = {}
    for name, shape in {
        'data': (8, 1, 1, 1),
        'context': (1, 1, 1, 8),
        'both': (2, 1, 1, 4),
    }.items():
        mesh = sharding.make_mesh(sharding.MeshConfig(*shape))
        with sharding.use(mesh):
            spread = NamedSharding(mesh, PartitionSpec(('data', 'fsdp'), 'context'))
            placed = [jax.device_put(x, spread) for x in (hidden, targets, d_nll)]

            def total(hidden, head, targets, d_nll):
                nll = losses.token_loss(hidden, head, targets, chunk=chunk)
                return jnp.sum(nll * d_nll), nll

            whole = jax.device_put(head, NamedSharding(mesh, PartitionSpec()))
            function = jax.jit(jax.grad(total, argnums=(0, 1), has_aux=True))
            compiled = function.lower(placed[0], whole, *placed[1:]).compile()
            costs[name] = compiled.cost_analysis()['flops']
            gradients, nll = compiled(placed[0], whole, *placed[1:])
            _, best = jax.jit(losses.token_choices)(placed[0], whole, placed[1])
        for found, wanted in zip((nll, *gradients), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=2e-5, rtol=1e-4)
        np.testing.assert_array_equal(best, losses.logits(hidden, head).argmax(-1))
    # Chunks are whole pieces of every part.
    assert costs['context'] < 1.1 * costs['data'] * (8 * -(-chunk // 8)) / chunk


def test_chunks_hold_a_part_of_the_logits() -> None:
    length, vocab, chunk = 1024, 2048, 64
    shapes = [
        jax.ShapeDtypeStruct((1, length, D), 'float32'),
        jax.ShapeDtypeStruct((D, vocab), 'float32'),
    ]
    targets = jnp.zeros((1, length), jnp.int32)

    def total(hidden, head):
        return jnp.sum(losses.token_loss(hidden, head, targets, chunk=chunk))

    compiled = jax.jit(jax.grad(total, argnums=(0, 1))).lower(*shapes).compile()
    all_logits = 4 * length * vocab
    assert compiled.memory_analysis().temp_size_in_bytes < all_logits / 4


@pytest.mark.parametrize('backend', ['cpu', 'tpu'])
def test_default_chunk(backend: str) -> None:
    assert losses.default_chunk(32, 64, 258, backend) == 64
    chunk = losses.default_chunk(1, 65536, 32000, backend)
    assert 1 < chunk < 65536
    assert 4 * chunk * 32000 <= 2**28
    # Even where one position of every sequence exceeds the limit.
    assert losses.default_chunk(4096, 16, 32000, backend) == 1


def test_wide_vocabularies_have_chunks_of_many_tokens() -> None:
    """The head is read once a chunk: 41 tokens of SmolLM2's, or 8 of Gemma 3's, are too few."""
    chunks = [losses.default_chunk(1, 8192, vocab, 'cpu') for vocab in (4096, 49_152, 262_144)]
    assert chunks == [512, 256, 128]


def test_mean_loss() -> None:
    nll = jnp.array([[1.0, 2.0], [3.0, jnp.inf]])
    np.testing.assert_allclose(losses.mean_loss(nll[:1]), 1.5)
    weights = jnp.array([[1.0, 1.0], [2.0, 0.0]])
    np.testing.assert_allclose(losses.mean_loss(nll, weights), 9 / 4)
    assert losses.mean_loss(nll, jnp.zeros((2, 2))) == 0
    gradient = jax.grad(losses.mean_loss)(nll, weights)
    np.testing.assert_allclose(gradient, [[0.25, 0.25], [0.5, 0]])


def test_the_parts_of_a_batch_add_up_to_its_mean() -> None:
    nll, weights = jnp.arange(12.0).reshape(4, 3), jnp.arange(12.0).reshape(4, 3) % 5
    total = jnp.sum(weights)
    parts = [losses.mean_loss(nll[i : i + 1], weights[i : i + 1], total) for i in range(4)]
    np.testing.assert_allclose(sum(parts), losses.mean_loss(nll, weights), rtol=1e-6)
    assert losses.mean_loss(nll, 0 * weights, 0 * total) == 0
