"""Models in which every token sees every token."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import LayerKind, apply
from nope.model.cache import empty
from nope.model.lam import LogLength
from nope.positions import Alibi, ForgetGate, Learned, NoPE, Position, RoPE, Sinusoidal, T5Bias
from nope.runtime.errors import FieldError
from tests import tiny
from tests.model.programs import T, influence, run

TOLD = {'rope': RoPE(), 'ALiBi': Alibi(), 'sinusoidal': Sinusoidal(), 'learned': Learned(T)}


@pytest.mark.parametrize('position', [NoPE(), *TOLD.values()], ids=['none', *TOLD])
def test_every_output_follows_every_token(position: Position) -> None:
    change_ST, _ = influence(tiny.model(position=position, causal=False))
    assert np.all(change_ST > 1e-4)


@pytest.mark.parametrize('position', [NoPE(), *TOLD.values()], ids=['none', *TOLD])
def test_without_positions_permuted_tokens_have_the_same_states(position: Position) -> None:
    """And the same entropies and gradients, each where its token has gone. With positions not."""
    config = tiny.model(position=position, causal=False)
    variables, order = tiny.variables(config), np.random.default_rng(1).permutation(T)
    tokens = tiny.tokens(2, T)
    found, moved = (run(config, variables, some) for some in (tokens, tokens[:, order]))
    pairs = [
        (np.asarray(moved.hidden), np.asarray(found.hidden)[:, order]),
        (np.asarray(moved.entropy), np.asarray(found.entropy)[..., order]),
    ]
    if not isinstance(position, NoPE):
        assert all(np.abs(one - other).max() > 1e-3 for one, other in pairs)
        return

    @jax.jit
    @jax.grad
    def gradient(variables: Any, tokens: Any) -> jax.Array:
        return jnp.sum(jnp.square(apply(config, variables, tokens).hidden[..., 0]))

    of_weights = [jax.tree.leaves(gradient(variables, some)) for some in (tokens, tokens[:, order])]
    for one, other in [*pairs, *zip(*of_weights, strict=True)]:
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def test_a_token_sees_its_own_segment_alone() -> None:
    """So padding behind a row leaves its states."""
    config = tiny.model(position=RoPE(), causal=False)
    tokens, n = tiny.tokens(2, T), T - 4
    segments = (np.arange(T) < n).astype(np.int32)[None].repeat(2, axis=0)
    alone = run(config, tiny.variables(config), tokens[:, :n]).hidden
    beside = run(config, tiny.variables(config), tokens, segments).hidden
    tiny.assert_close(beside[:, :n], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'position': T5Bias()}, 'causal is False; T5 bias is not defined for keys after'),
        ({'position': ForgetGate()}, 'causal is False; forget gate is not defined'),
        ({'window': 4}, 'causal is False; layers of none, window 4 see earlier tokens alone'),
        ({'pattern': (LayerKind(chunk=4),)}, 'causal is False; layers of none, chunks of 4'),
        ({'weights': 'stick_breaking', 'attention': None}, "weights is 'stick_breaking'"),
        ({'temperature': 'adaptive'}, "temperature is 'adaptive'; accepted: 'none'"),
        ({'lam': LogLength(T)}, r'lam is LogLength.*; accepted: Constant\(\) where causal is'),
        ({'position': RoPE(), 'position_range': 64}, 'position_range is 64; accepted: None'),
    ],
)  # fmt: skip
def test_what_only_earlier_tokens_define_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        tiny.model(causal=False, **changes)


def test_an_encoder_has_no_cache() -> None:
    with pytest.raises(ValueError, match=r'model\.causal is False: an encoder reads'):
        empty(tiny.model(causal=False), np.full(1, 8.0), 8)
