"""Shape of attention: weight on the first and the latest tokens, size of the heads' outputs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AlibiBias, Bias, Mask, ScaleInvariantBias, attention
from nope.model import LayerKind, ModelConfig, apply
from nope.model.shape import shape_of
from nope.positions import Alibi, ForgetGate, NoPE, RoPE, Split
from nope.variables import with_uniform_lam
from tests import tiny
from tests.model.programs import T, run

SPAN = 4
MODELS = {
    'none': tiny.model(layers=2),
    'a kind a layer': tiny.model(pattern=(LayerKind(RoPE(), window=6), LayerKind(Alibi()))),
    'split, window': tiny.model(position=Split(NoPE(), window=3)),
    'forget gates': tiny.model(position=ForgetGate()),
}


@pytest.mark.parametrize(
    ('window', 'bias'),
    [
        (None, None),
        (3, None),
        (None, AlibiBias(jnp.asarray([0.5, 0.1, 0.0, 0.3]))),
        (7, ScaleInvariantBias(jnp.asarray([1.0, 0.0, 1.0, 0.5]), tau=2.0)),
    ],
    ids=['none', 'window', 'ALiBi', 'factors, window'],
)
def test_shares_are_sums_of_the_dense_weights(window: int | None, bias: Bias | None) -> None:
    """On grouped heads; where there is a bias by distance, with one by key too."""
    rng = np.random.default_rng(0)
    B, N, K, H = 2, 4, 2, 8
    q = jnp.asarray(rng.normal(size=(B, T, N, H)), jnp.float32)
    k, v = (jnp.asarray(rng.normal(size=(B, T, K, H)), jnp.float32) for _ in range(2))
    key_bias = None if bias is None else jnp.asarray(rng.normal(size=(B, N, T)), jnp.float32)

    def attend(*operands: jax.Array, **how: Any) -> Any:
        return attention(*operands, **how, implementation='reference')

    how: dict[str, Any] = {'mask': Mask(window=window), 'bias': bias, 'key_bias_BNS': key_bias}
    seen = attend(q, k, v, **how)
    found = shape_of(attend, seen, SPAN, q, k, v, **how)
    # With these values a head's output is its weights.
    eye = jnp.broadcast_to(jnp.eye(T)[None, :, None], (B, T, K, T))
    padded = [jnp.pad(x, [(0, 0)] * 3 + [(0, T - H)]) for x in (q, k)]
    weights_BTNS = np.asarray(attend(*padded, eye, **how).out)
    at = np.arange(T)
    near_TS = at[:, None] - at[None] < SPAN
    close = {'rtol': 1e-4, 'atol': 1e-6}
    np.testing.assert_allclose(found.first, weights_BTNS[..., 0].swapaxes(1, 2), **close)
    local_BTN = np.einsum('BTNS,TS->BTN', weights_BTNS, near_TS)
    np.testing.assert_allclose(found.local, local_BTN.swapaxes(1, 2), **close)
    norm_BTN = np.linalg.norm(np.asarray(seen.out), axis=-1)
    np.testing.assert_allclose(found.norm, norm_BTN.swapaxes(1, 2), **close)


@pytest.mark.parametrize('config', MODELS.values(), ids=MODELS)
def test_every_layer_and_head_has_a_shape(config: ModelConfig) -> None:
    """And nothing else of the output changes."""
    variables, tokens = tiny.variables(config), tiny.tokens(2, T)
    found = apply(config, variables, tokens, entropy=True, span=SPAN)
    assert found.shape is not None
    for values in found.shape:
        assert values.shape == (config.layers, 2, config.heads, T)
        assert bool(jnp.all(jnp.isfinite(values)))
    share = np.asarray(found.shape.local)
    np.testing.assert_allclose(share[..., :SPAN], 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(found.shape.first)[..., 0], 1.0, rtol=1e-5)
    plain = run(config, variables, tokens)
    assert plain.shape is None
    tiny.assert_close(found._replace(shape=None), plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    'config', [*MODELS.values(), tiny.model(sinks=True)], ids=[*MODELS, 'sinks']
)
def test_every_row_has_a_largest_logit(config: ModelConfig) -> None:
    """And nothing else of the output changes."""
    variables, tokens = tiny.variables(config), tiny.tokens(2, T)
    found = apply(config, variables, tokens, entropy=True, max_logit=True)
    assert found.max_logit is not None
    assert found.max_logit.shape == (config.layers, 2, config.heads, T)
    assert found.max_logit.dtype == jnp.float32
    plain = run(config, variables, tokens)
    assert plain.max_logit is None
    tiny.assert_close(found._replace(max_logit=None), plain, rtol=1e-5, atol=1e-5)


def test_largest_logits_grow_with_lambda() -> None:
    """In the first layer, whose input it does not change."""
    config = MODELS['none']
    variables, tokens = tiny.variables(config), tiny.tokens(2, T)
    once, twice = (
        np.asarray(
            apply(config, with_uniform_lam(variables, lam), tokens, max_logit=True).max_logit
        )
        for lam in (1.0, 2.0)
    )
    np.testing.assert_allclose(twice[0], 2 * once[0], rtol=1e-5, atol=1e-6)


def test_local_heads_look_no_further_than_their_window() -> None:
    config = MODELS['split, window']
    found = apply(config, tiny.variables(config), tiny.tokens(2, T), entropy=True, span=3)
    assert found.shape is not None
    local, others = np.split(np.asarray(found.shape.local), 2, axis=2)
    np.testing.assert_allclose(local, 1.0, rtol=1e-5)
    assert np.all(others[..., 3:] < 1)
    first = np.asarray(found.shape.first)[:, :, : config.heads // 2, 3:]
    np.testing.assert_array_equal(first, 0.0)
