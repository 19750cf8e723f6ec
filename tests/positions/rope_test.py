from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.identity import plain
from nope.positions import NTK, Linear, RoPE, Scaling
from tests import vectors
from tests.positions import cases

T, H = 32, 8
POSITIONS_BT = np.arange(T, dtype=np.int32)[None]
NEIGHBOURS_FIRST = [0, 2, 4, 6, 1, 3, 5, 7]  # interleaved pairs, taken apart into halves

each_rule = pytest.mark.parametrize('scaling', cases.SCALINGS.values(), ids=cases.SCALINGS)
each_layout = pytest.mark.parametrize('interleaved', [False, True], ids=['halves', 'neighbours'])


def turned(encoding: RoPE, x_BTNH: np.ndarray) -> np.ndarray:
    """Queries at positions 0 .. T - 1 of a sequence of T tokens, twice the training length."""
    return np.asarray(cases.encode(encoding, x_BTNH, x_BTNH, POSITIONS_BT, T)[0])


def factor(scaling: Scaling) -> np.float32:
    """What the rule multiplies queries and keys with."""
    found = scaling.attention_factor
    return np.float32(1.0 if found is None else found)


@pytest.mark.parametrize(('name', 'expected'), vectors.entries('rope'))
def test_inverse_frequencies_are_those_of_llama(name: str, expected: list[float]) -> None:
    found = RoPE().inverse_frequencies(vectors.DIMS, vectors.TRAIN_LENGTH)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected, rtol=vectors.RTOL)


@pytest.mark.parametrize(('layout', 'expected'), vectors.entries('rotate_d4_pos1_x1234'))
def test_pairs_turn_as_their_layout_says(layout: str, expected: list[float]) -> None:
    encoding = RoPE(interleaved={'half_split': False, 'interleaved': True}[layout])
    x_BTNH = np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 1, 4)
    for out in cases.encode(encoding, x_BTNH, x_BTNH, np.array([[1]], np.int32), 2):
        np.testing.assert_allclose(out.ravel(), expected, rtol=vectors.RTOL)


@each_layout
def test_interleaved_weights_become_halves_by_a_permutation(interleaved: bool) -> None:
    """Of the dimensions of each head: (0, 2, 4, .., 1, 3, 5, ..), and back."""
    x_BTNH = cases.normal(0, 1, T, 2, H)
    order = np.array(NEIGHBOURS_FIRST)
    if not interleaved:
        order = np.argsort(order)
    here = turned(RoPE(interleaved=interleaved), x_BTNH)
    there = turned(RoPE(interleaved=not interleaved), x_BTNH[..., order])
    np.testing.assert_array_equal(here[..., order], there)


@each_layout
@each_rule
def test_norms_are_kept(scaling: Scaling, interleaved: bool) -> None:
    """Up to the rule's factor; position 0 does not turn at all."""
    x_BTNH = cases.normal(0, 1, T, 2, H)
    out = turned(RoPE(scaling=scaling, interleaved=interleaved), x_BTNH)
    expected = factor(scaling) * np.linalg.norm(x_BTNH, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(out, axis=-1), expected, rtol=1e-6)
    np.testing.assert_allclose(out[:, 0], factor(scaling) * x_BTNH[:, 0], rtol=2e-7)
    assert np.abs(out[:, 1:] - factor(scaling) * x_BTNH[:, 1:]).max(axis=(0, 2, 3)).min() > 0.1


@each_layout
@each_rule
def test_products_depend_on_the_distance_alone(scaling: Scaling, interleaved: bool) -> None:
    """One query vector and one key vector at every position: q_m . k_n is a function of m - n."""
    encoding = RoPE(scaling=scaling, interleaved=interleaved)
    q_BTNH, k_BTNH = (cases.normal(seed, 1, 1, 2, H).repeat(T, axis=1) for seed in (0, 1))
    q_BTNH, k_BTNH = (
        np.asarray(x) for x in cases.encode(encoding, q_BTNH, k_BTNH, POSITIONS_BT, T)
    )
    product_NTS = np.einsum('BTNH,BSNH->NTS', q_BTNH, k_BTNH)
    for distance in range(-T + 1, T):
        diagonal = np.diagonal(product_NTS, distance, axis1=1, axis2=2)
        np.testing.assert_allclose(diagonal, diagonal[:, :1].repeat(diagonal.shape[1], 1), 0, 2e-5)
    assert np.ptp(product_NTS) > 1


@each_layout
@pytest.mark.parametrize('scaling', [cases.SCALINGS['none'], Linear(2.0)], ids=['plain', 'linear'])
def test_dimensions_beyond_those_that_turn_stay(scaling: Scaling, interleaved: bool) -> None:
    """And those that turn do so as a head of their number."""
    x_BTNH = cases.normal(0, 1, T, 2, H)
    partly = turned(RoPE(scaling=scaling, dims=4, interleaved=interleaved), x_BTNH)
    np.testing.assert_array_equal(partly[..., 4:], x_BTNH[..., 4:])
    alone = turned(RoPE(scaling=scaling, interleaved=interleaved), x_BTNH[..., :4])
    np.testing.assert_array_equal(partly[..., :4], alone)


@each_rule
def test_the_fastest_pairs_turn_and_the_others_stay(scaling: Scaling) -> None:
    """With the frequencies of the whole head, unlike fewer dimensions with their own."""
    encoding, whole = RoPE(scaling=scaling, share=0.5), RoPE(scaling=scaling)
    x_BTNH = cases.normal(0, 1, T, 2, H)
    fast = np.arange(H) % (H // 2) < H // 4
    partly, all_pairs = turned(encoding, x_BTNH), turned(whole, x_BTNH)
    np.testing.assert_array_equal(partly[..., fast], all_pairs[..., fast])
    np.testing.assert_array_equal(partly[..., ~fast], factor(scaling) * x_BTNH[..., ~fast])
    assert np.abs(all_pairs - partly)[..., ~fast].max() > 1e-3


@pytest.mark.parametrize(
    ('share', 'head_dim', 'pairs'), [(0.75, 8, 3), (0.3, 16, 2), (1.0, 6, 3), (0.25, 8, 1)]
)
def test_the_pairs_that_turn_are_rounded_down(share: float, head_dim: int, pairs: int) -> None:
    frequencies = RoPE(share=share).inverse_frequencies(head_dim, T)
    assert int((frequencies > 0).sum()) == pairs
    np.testing.assert_array_equal(
        frequencies[:pairs], RoPE().inverse_frequencies(head_dim, T)[:pairs]
    )


def test_a_share_of_all_pairs_leaves_the_identity_as_it_was() -> None:
    assert 'share' not in plain(RoPE(share=1.0))
    assert plain(RoPE(share=0.5))['share'] == 0.5


@each_layout
def test_half_precision_is_rotated_in_float32(interleaved: bool) -> None:
    """At position 1000 bfloat16 angles would be off by whole turns."""
    encoding = RoPE(dims=4, interleaved=interleaved)
    x_BTNH = jnp.asarray(cases.normal(0, 1, 1, 2, H), jnp.bfloat16)
    positions_BT = np.array([[1001]], np.int32)
    found, exact = (
        cases.encode(encoding, x, x, positions_BT, 2048)[0]
        for x in (x_BTNH, x_BTNH.astype(jnp.float32))
    )
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found, exact.astype(jnp.bfloat16))


@pytest.mark.parametrize(
    ('encoding', 'head_dim', 'message'),
    [
        (RoPE(), 7, r'^head_dim is 7; .* even'),
        (RoPE(), 2, r'^head_dim is 2; .* at least 4'),
        (RoPE(dims=6), 4, r'^dims is 6; .* at most head_dim, 4'),
        (RoPE(dims=5), 8, r'^dims is 5; .* even'),
        (RoPE(share=0.2), 8, r'^share is 0.2; none of 4 pairs'),
        (RoPE(dims=4, share=0.4), 8, r'^share is 0.4; none of 2 pairs'),
        (RoPE(base=1e39), 8, r'^base is 1e\+39; scaled it is 1e\+39; accepted in float32: 1.175'),
        (RoPE(base=1e-39), 8, r'^base is 1e-39; scaled it is 1e-39; accepted in float32: 1.175'),
        (RoPE(scaling=NTK(1e30)), 8, r'^base is 10000.0; scaled it is 1e\+44; acc.* 3.4.*e\+38$'),
        (RoPE(base=1e300, scaling=NTK(1e300)), 8, r'^base is 1e\+300; scaled it is inf; accept'),
        (RoPE(base=1e39, scaling=Linear(2.0)), 8, r'^base is 1e\+39; scaled it is 1e\+39'),
    ],
)
def test_heads_that_cannot_be_rotated_are_refused(
    encoding: RoPE, head_dim: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        encoding.check(head_dim)
    RoPE(dims=4).check(7)
