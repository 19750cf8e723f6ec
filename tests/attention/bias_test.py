"""Biases are functions of the distance, and their line of numbers is the dense array."""

from __future__ import annotations

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention.bias import (
    AlibiBias,
    Bias,
    Buckets,
    KerpleBias,
    SandwichBias,
    ScaleInvariantBias,
    as_array,
    distances,
    factors_as_array,
    line,
    toeplitz,
)

SIZES = [(1, 1), (1, 6), (6, 1), (4, 7), (7, 4), (5, 5)]


@pytest.fixture(params=['cpu', 'gpu'])
def copied_for(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spreads lines as on that platform."""
    monkeypatch.setattr(line, 'target_device', lambda: (request.param, ''))


@pytest.mark.usefixtures('copied_for')
@pytest.mark.parametrize(('queries', 'keys'), SIZES)
def test_a_line_spreads_over_diagonals(queries: int, keys: int) -> None:
    line_ND = np.arange(2.0 * (queries + keys - 1)).reshape(2, -1)
    block = np.asarray(toeplitz(jnp.asarray(line_ND), queries))
    assert block.shape == (2, queries, keys)
    for t, s in np.ndindex(queries, keys):
        np.testing.assert_array_equal(block[:, t, s], line_ND[:, t - s + keys - 1])


@pytest.mark.usefixtures('copied_for')
@pytest.mark.parametrize(('queries', 'keys'), SIZES)
def test_its_transpose_sums_over_diagonals(queries: int, keys: int) -> None:
    size = queries + keys - 1
    block_TS = np.random.default_rng(0).standard_normal((queries, keys)).astype(np.float32)
    turn = jax.linear_transpose(
        lambda line: toeplitz(line, queries), jax.ShapeDtypeStruct((size,), jnp.float32)
    )
    (line_D,) = turn(jnp.asarray(block_TS))
    wanted_D = np.zeros(size)
    for t, s in np.ndindex(queries, keys):
        wanted_D[t - s + keys - 1] += block_TS[t, s]
    np.testing.assert_allclose(line_D, wanted_D, atol=1e-6)


@pytest.mark.usefixtures('copied_for')
@pytest.mark.parametrize('offset', [None, 0, 5])
@pytest.mark.parametrize(('queries', 'keys'), SIZES)
@pytest.mark.parametrize('kind', ['alibi', 'buckets', 'kerple', 'sandwich', 'scaled'])
def test_line_and_dense_array_agree(kind: str, queries: int, keys: int, offset: int | None) -> None:
    rng = np.random.default_rng(0)
    kinds: dict[str, Bias] = {
        'alibi': AlibiBias(jnp.asarray(rng.random(2))),
        'buckets': Buckets(jnp.asarray(rng.random((8, 2))), max_distance=10),
        'kerple': KerpleBias(*jnp.asarray(rng.random((2, 2)))),
        'sandwich': SandwichBias(jnp.asarray(rng.random(2)), dims=6),
        'scaled': ScaleInvariantBias(jnp.asarray(rng.random(2))),
    }
    bias = kinds[kind]
    line_ND = bias.by_distance(distances(queries, keys, offset))
    np.testing.assert_array_equal(toeplitz(line_ND, queries), as_array(bias, queries, keys, offset))


def test_alibi_falls_with_distance() -> None:
    line_ND = AlibiBias(jnp.asarray([0.5, 0.25])).by_distance(jnp.asarray([-2, 0, 3]))
    np.testing.assert_array_equal(line_ND, [[-1.0, 0.0, -1.5], [-0.5, 0.0, -0.75]])


def test_only_biases_that_multiply_have_factors() -> None:
    for bias in (AlibiBias(jnp.ones(2)), KerpleBias(jnp.ones(2), jnp.ones(2))):
        assert factors_as_array(bias, 3, 3, None) is None
    factors_NTS = factors_as_array(ScaleInvariantBias(jnp.ones(2)), 3, 4, 1)
    assert factors_NTS is not None and factors_NTS.shape == (2, 3, 4)


@pytest.mark.parametrize(
    ('bias', 'message'),
    [
        (KerpleBias(jnp.ones(()), jnp.ones(2)), r'bias\.heights_N has shape \(\), expected \[N\]'),
        (KerpleBias(jnp.ones(2), jnp.ones(3)), r'bias\.rates_N has shape \(3,\), .*\(2,\)'),
        (SandwichBias(jnp.ones((2, 2))), r'bias\.scales_N has shape \(2, 2\), expected \[N\]'),
        (ScaleInvariantBias(jnp.ones(())), r'bias\.strengths_N has shape \(\), expected \[N\]'),
        (ScaleInvariantBias(jnp.ones(2), tau=0.0), r'bias\.tau is 0.0; accepted: above 0'),
        (SandwichBias(jnp.ones(2), dims=3), r'bias\.dims is 3; accepted: even'),
        (SandwichBias(jnp.ones(2), base=0.0), r'bias\.base is 0\.0; accepted: above 0'),
    ],
    ids=str,
)
def test_parameters_that_do_not_fit_are_refused(bias: Bias, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bias.check()


def test_buckets_are_those_of_t5() -> None:
    path = pathlib.Path(__file__).parent / 't5_buckets.json'
    wanted = json.loads(path.read_text())['buckets']
    bias = Buckets(jnp.zeros((32, 1)))
    np.testing.assert_array_equal(bias.bucket(jnp.arange(len(wanted))), wanted)
    np.testing.assert_array_equal(bias.bucket(jnp.asarray([-5, -1, 0, 10**6])), [0, 0, 0, 31])
