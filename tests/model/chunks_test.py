"""Layers that attend inside chunks of the sequence."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Mask, attention
from nope.attention.cases import Trial, make_inputs
from nope.data.batch import Batch
from nope.model import LayerKind, ModelConfig, apply
from nope.model.cache import Cache, empty
from nope.model.sequence import Places, masked
from nope.positions import Alibi, NoPE, Position, RoPE, Split
from tests import tiny
from tests.model.context_test import mesh_of, on, on_one_device
from tests.model.programs import T, influence

CHUNK = 5
IROPE = (LayerKind(RoPE(), chunk=CHUNK), LayerKind(NoPE()))


def chunked(position: Position, chunk: int = CHUNK) -> ModelConfig:
    """A model of one layer."""
    return tiny.model(layers=1, pattern=(LayerKind(position, chunk=chunk),))


def documents() -> Batch:
    begins = np.zeros((2, T + 1), bool)
    begins[0, [3, 4]] = begins[1, 7] = True
    return Batch.of_documents(tiny.tokens(2, T + 1), begins)


@pytest.mark.parametrize(
    'position',
    [NoPE(), RoPE(), Alibi(), Split(Alibi(), window=2)],
    ids=lambda position: position.describe(),
)
def test_a_query_sees_the_earlier_keys_of_its_chunk_alone(position: Position) -> None:
    change_ST, _ = influence(chunked(position))
    s, t = np.meshgrid(np.arange(T), np.arange(T), indexing='ij')
    visible_ST = (s <= t) & (s // CHUNK == t // CHUNK)
    np.testing.assert_array_equal(change_ST[~visible_ST], 0)
    assert np.all(change_ST[visible_ST] > 1e-4)


def test_chunks_are_counted_in_each_document() -> None:
    """Against the rule written out for every pair of tokens."""
    batch = documents()
    places = Places(*(jnp.asarray(batch.positions),) * 2)
    mask = Mask(q_segments_BT=batch.segments, kv_segments_BS=batch.segments)
    found = np.asarray(masked(mask, places, 3).as_array(2, T, T))
    expected = np.zeros((2, T, T), bool)
    for b, t, s in np.ndindex(expected.shape):
        same_document = batch.segments[b, t] == batch.segments[b, s]
        same_chunk = batch.positions[b, t] // 3 == batch.positions[b, s] // 3
        expected[b, t, s] = s <= t and same_document and same_chunk
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures('interpreted_kernels')
@pytest.mark.parametrize('implementation', ['chunked', 'pallas_tpu_interpret'])
def test_kernels_agree_with_a_dense_mask(implementation: str) -> None:
    """Outputs and entropies of a softmax over T x T logits, the last chunk cut short."""
    length = 37
    inputs = make_inputs(Trial('chunks', 2, length, length, 4, 2, 8))
    q, k, v = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH
    at = jnp.arange(length)[None].repeat(2, axis=0)
    mask = masked(Mask(), Places(at, at), 8)
    found = attention(q, k, v, mask=mask, entropy=True, implementation=implementation)
    repeated = [np.repeat(np.asarray(x, np.float64), 2, axis=2) for x in (k, v)]
    logits = np.einsum('BTNH,BSNH->BNTS', np.asarray(q, np.float64), repeated[0])
    t, s = np.meshgrid(np.arange(length), np.arange(length), indexing='ij')
    logits = np.where((s <= t) & (s // 8 == t // 8), logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    expected = np.einsum('BNTS,BSNH->BTNH', weights, repeated[1])
    np.testing.assert_allclose(found.out, expected, rtol=1e-4, atol=1e-5)
    entropy = -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1)
    np.testing.assert_allclose(found.entropy, entropy, rtol=1e-4, atol=1e-5)


def test_a_chunk_is_a_sequence_of_its_own() -> None:
    """In one layer without position: hidden states and entropies, the loss's gradients too."""
    config, plain = chunked(NoPE(), 4), tiny.model(layers=1)
    variables, tokens = tiny.varied_lam(plain), tiny.tokens(2, T)

    def outputs(config: ModelConfig, tokens: np.ndarray) -> tuple:
        def objective(variables):
            output = apply(config, variables, tokens, entropy=True)
            entropy_BNT = output.entropy[0]
            sums = jnp.sum(jnp.sin(output.hidden)) + jnp.sum(entropy_BNT)
            return sums, (output.hidden, entropy_BNT.swapaxes(1, 2))

        compiled = jax.jit(jax.value_and_grad(objective, has_aux=True))
        (_, (hidden, entropy)), gradients = compiled(variables)
        return *(x.reshape(2 * T, -1) for x in (hidden, entropy)), gradients

    whole, apart = outputs(config, tokens), outputs(plain, tokens.reshape(-1, 4))
    tiny.assert_close(whole, apart, rtol=1e-5, atol=1e-5)


def test_a_split_sequence_goes_around_the_ring() -> None:
    """Chunks end inside the devices' parts, and documents inside chunks."""
    config = tiny.model(attention=None, pattern=IROPE)
    operations, found = on(mesh_of(1, 1, 2, 4), config, 32)
    tiny.assert_close(found, on_one_device(config, 32), rtol=1e-5, atol=2e-5)
    assert 'ppermute' in operations


def test_the_weight_on_the_first_token_is_zero_outside_its_chunk() -> None:
    variables = tiny.variables(tiny.model(layers=1))
    config, tokens = chunked(NoPE()), tiny.tokens(2, T)
    traced = jax.jit(lambda v: apply(config, v, tokens, span=2).shape).trace(variables)
    shape = traced.lower().compile()(variables)
    first_BNT = np.asarray(shape.first[0])
    assert np.all(first_BNT[..., :CHUNK] > 0)
    np.testing.assert_array_equal(first_BNT[..., CHUNK:], 0)


def test_slots_of_a_cache_are_placed_from_the_first_token_of_each_row() -> None:
    """Queries as the keys in their own slots, so that a token always sees itself."""
    padding_B = jnp.asarray([0, 3], jnp.int32)
    cache: Cache = empty(tiny.MODEL, jnp.asarray([8.0, 5.0]), 8, padding_B)
    keys_BS = np.asarray(cache.places(0, 8))
    np.testing.assert_array_equal(keys_BS, [np.arange(8), [0, 0, 0, 0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(cache.places(jnp.int32(5), 2), keys_BS[:, 5:7])
