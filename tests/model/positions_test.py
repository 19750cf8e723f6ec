"""Every position encoding inside the model."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.positions import (
    Alibi,
    Kerple,
    Learned,
    NoPE,
    Position,
    RoPE,
    ScaleInvariant,
    Sinusoidal,
    Split,
    T5Bias,
)
from tests import tiny
from tests.model.programs import T, influence, run
from tests.positions import cases

ENCODINGS = cases.ENCODINGS | {
    'partly RoPE': RoPE(dims=4, interleaved=True),
    'LongRoPE': RoPE(scaling=cases.SCALINGS['longrope']),
    'half scale-invariant': Split(ScaleInvariant()),
    'half KERPLE': Split(Kerple()),
    'half T5': Split(T5Bias(8, 12)),
    'half RoPE': Split(RoPE()),
    'half RoPE, window': Split(RoPE(), window=5),
}


@pytest.mark.parametrize('position', ENCODINGS.values(), ids=ENCODINGS)
def test_outputs_follow_earlier_tokens_and_no_later_one(position: Position) -> None:
    """And one layer knows their order from the encoding alone: permuting earlier tokens leaves the
    last output of a NoPE layer, and of no other one."""
    change_ST, permuted_T = influence(tiny.model(layers=1, position=position))
    np.testing.assert_array_equal(np.tril(change_ST, -1), 0)
    assert np.all(change_ST[np.triu_indices(T)] > 1e-4)
    if isinstance(position, NoPE):
        np.testing.assert_allclose(permuted_T[-1], 0, atol=2e-6)
    else:
        assert permuted_T[-1] > 1e-3


@pytest.mark.parametrize('position', [Sinusoidal(), Learned(size=T)], ids=['sinusoidal', 'learned'])
def test_vectors_are_added_to_the_embeddings(position: Position) -> None:
    """Before a norm of theirs. Token t stands at position t, so that its row is its position's."""
    config = tiny.model(position=position, embedding_norm=True)
    variables = tiny.variables(config)
    params = dict(variables['params'])
    row_TD = position.embed(
        params['embedding'][None, :T], jnp.arange(T)[None], params.pop('position', None)
    )
    params['embedding'] = params['embedding'].at[:T].set(row_TD[0])
    tokens = np.arange(T, dtype=np.int32)[None].repeat(2, axis=0)
    added = run(tiny.model(embedding_norm=True), {**variables, 'params': params}, tokens)
    found = run(config, variables, tokens)
    tiny.assert_close(found.hidden, added.hidden, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('position', [RoPE(), Alibi(), T5Bias(8, 12)], ids=lambda p: p.describe())
def test_tokens_see_their_own_segment_alone(position: Position) -> None:
    config = tiny.model(position=position)
    variables, tokens = tiny.varied_lam(config), tiny.tokens(2, T)
    segments = np.repeat([[3, 1]], T // 2, axis=1).repeat(2, axis=0)
    positions = np.tile(np.arange(T // 2, dtype=np.int32), 2)[None]
    together = run(config, variables, tokens, segments, positions, length=float(T)).hidden
    for part in (slice(0, T // 2), slice(T // 2, T)):
        alone = run(config, variables, tokens[:, part], length=float(T)).hidden
        np.testing.assert_allclose(together[:, part], alone, rtol=1e-5, atol=1e-5)


def test_a_longer_sequence_than_the_table_is_refused() -> None:
    config = tiny.model(position=Learned(size=T - 1))
    variables = tiny.variables(config)
    with pytest.raises(ValueError, match='tokens_BT has 12 tokens; learned positions end at 11'):
        run.eval_shape(config, variables, tiny.tokens(1, T))
    assert run.eval_shape(config, variables, tiny.tokens(1, T - 1)).hidden.shape == (1, T - 1, 32)


@pytest.mark.parametrize('position', ENCODINGS.values(), ids=ENCODINGS)
def test_half_precision_stays_half_precision(position: Position) -> None:
    config = tiny.model(position=position, dtype='bfloat16')
    output = run.eval_shape(config, tiny.variables(config), tiny.tokens(1, T))
    assert output.hidden.dtype == output.head.dtype == jnp.bfloat16
