from __future__ import annotations

import jax
import numpy as np
import pytest

from nope.heads import order_of, reordered, silenced
from nope.model import LayerKind, ModelConfig, apply
from nope.positions import ForgetGate, NoPE, RoPE
from tests import tiny

TOKENS = tiny.tokens(2, 9)
# Every array that heads have, with and without grouped queries.
EVERY_ARRAY = {'qkv_bias': True, 'output_bias': True, 'output_gate': 'head', 'sinks': True}
EVERY_ARRAY |= {'temperature': 'adaptive', 'qk_norm': True}


def logits(config: ModelConfig, params: dict) -> np.ndarray:
    variables = {**tiny.variables(config), 'params': params}
    output = apply(config, variables, TOKENS)
    return np.asarray(output.hidden @ output.head)


@pytest.mark.parametrize(
    ('position', 'kv_heads'),
    [
        (NoPE(), 2),
        (RoPE(), 4),
        pytest.param(NoPE(), 4, marks=pytest.mark.slow),
        pytest.param(RoPE(), 2, marks=pytest.mark.slow),
    ],
    ids=['NoPE-2', 'rope-4', 'NoPE-4', 'rope-2'],
)
def test_the_order_of_heads_changes_nothing(position: NoPE | RoPE, kv_heads: int) -> None:
    config = tiny.model(position=position, kv_heads=kv_heads, **EVERY_ARRAY)
    params = tiny.variables(config)['params']
    draw = np.random.default_rng(1)
    order_LK = np.stack([draw.permutation(kv_heads) for _ in range(config.layers)])
    order_LK[0] = np.arange(kv_heads)[::-1]
    changed = reordered(config, params, order_LK)
    np.testing.assert_allclose(logits(config, changed), logits(config, params), atol=2e-5)
    old, new = (p['layers']['attention']['key'] for p in (params, changed))
    np.testing.assert_array_equal(new[0], old[0][:, ::-1])


def test_norms_of_all_heads_together_follow_the_order() -> None:
    config = tiny.model(qk_norm=True, qk_norm_over='projection', block='post')
    params = tiny.variables(config)['params']
    changed = reordered(config, params, np.array([[1, 0]] * 2))
    np.testing.assert_allclose(logits(config, changed), logits(config, params), atol=2e-5)
    old, new = (p['layers']['attention']['query_norm']['scale'] for p in (params, changed))
    np.testing.assert_array_equal(new, old[:, [2, 3, 0, 1]])


def test_gated_heads_keep_their_places() -> None:
    config = tiny.model(position=ForgetGate())
    with pytest.raises(ValueError, match='forget gates cannot be put in another order'):
        reordered(config, tiny.variables(config)['params'], np.array([[1, 0]] * 2))


def test_a_silent_head_adds_nothing() -> None:
    """Silencing heads one after the other ends where attention adds its output bias alone."""
    config = tiny.model(**EVERY_ARRAY)
    params = tiny.variables(config)['params']
    silent_LN = np.zeros((2, 4), bool)
    silent_LN[1, 2] = True
    one = silenced(tiny.MODEL, params, silent_LN)
    before, after = (np.array(p['layers']['attention']['output']) for p in (params, one))
    assert not after[1, 2].any() and before[1, 2].all()
    after[1, 2] = before[1, 2]
    np.testing.assert_array_equal(after, before)
    assert np.abs(logits(config, one) - logits(config, params)).max() > 1e-3

    values = {**params['layers']['attention'], 'value': 0 * params['layers']['attention']['value']}
    values['value_bias'] = 0 * values['value_bias']
    empty = {**params, 'layers': {**params['layers'], 'attention': values}}
    none = silenced(tiny.MODEL, params, np.ones((2, 4), bool))
    np.testing.assert_allclose(logits(config, none), logits(config, empty), atol=1e-5)


def test_heads_of_layers_of_several_shapes_are_silenced_and_not_reordered() -> None:
    config = tiny.model(pattern=(LayerKind(RoPE()), LayerKind(head_dim=12)))
    params = tiny.variables(config)['params']
    silent_LN = np.zeros((2, 4), bool)
    silent_LN[1, 2] = True
    found = silenced(config, params, silent_LN)
    before, after = (np.array(p['layers']['1']['attention']['output']) for p in (params, found))
    assert before[2].all() and not after[2].any()
    after[2] = before[2]
    np.testing.assert_array_equal(after, before)
    tiny.assert_same(found['layers']['0'], params['layers']['0'])
    with pytest.raises(ValueError, match='layers that differ in their arrays'):
        reordered(config, params, np.array([[1, 0]] * 2))


def test_heads_are_ordered_by_the_mean_score_of_their_group() -> None:
    scores_LN = np.array([[0.1, 0.2, 0.9, 0.0], [0.5, 0.5, 0.5, 0.5]])
    np.testing.assert_array_equal(order_of(scores_LN, 2), [[1, 0], [0, 1]])
    np.testing.assert_array_equal(order_of(scores_LN, 4)[0], [2, 1, 0, 3])


def test_weights_stay_where_they_are_placed() -> None:
    params = tiny.variables()['params']
    found = silenced(
        tiny.MODEL, reordered(tiny.MODEL, params, np.array([[1, 0]] * 2)), np.zeros((2, 4), bool)
    )
    for old, new in zip(jax.tree.leaves(params), jax.tree.leaves(found), strict=True):
        assert new.sharding == old.sharding and new.dtype == old.dtype
