from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import apply
from nope.model.lam import LogLength
from nope.positions import DynamicNTK, RoPE
from nope.variables import abstract_variables, fresh_variables, lam_of, with_lam
from tests import tiny
from tests.model.lam import by_hand
from tests.model.programs import T, influence, loss_and_gradients, run

ROPE = RoPE(scaling=DynamicNTK(factor=2.0, train_length=8))


def test_log_length_is_the_base_model_up_to_the_training_length() -> None:
    """Whatever the coefficients, bit for bit; not beyond."""
    tokens = tiny.tokens(2, T)
    base = run(tiny.MODEL, tiny.variables(), tokens)
    config = tiny.model(lam=LogLength(train_length=T))
    tiny.assert_same(run(config, tiny.varied_lam(), tokens), base)
    beyond = run(tiny.model(lam=LogLength(train_length=T // 2)), tiny.varied_lam(), tokens)
    assert np.abs(beyond.hidden - base.hidden).max() > 1e-3


def test_the_length_given_is_the_one_that_counts() -> None:
    """A prefix run as part of a longer sequence has that sequence's lambda and frequencies."""
    config = tiny.model(lam=LogLength(train_length=4), position=ROPE)
    variables, tokens = tiny.varied_lam(), tiny.tokens(2, 2 * T)
    whole = run(config, variables, tokens).hidden[:, :T]
    prefix = run(config, variables, tokens[:, :T], length=2.0 * T).hidden
    np.testing.assert_allclose(prefix, whole, rtol=1e-5, atol=1e-5)
    assert np.abs(run(config, variables, tokens[:, :T]).hidden - whole).max() > 1e-3


@pytest.mark.parametrize(
    ('remat', 'unroll'),
    [
        ('full', 2),
        pytest.param('dots', None, marks=pytest.mark.slow),
        pytest.param('elementwise', 1, marks=pytest.mark.slow),
    ],
)
def test_rematerialisation_and_unrolling_change_nothing(remat: str, unroll: int | None) -> None:
    base = tiny.model(layers=3)
    config = tiny.model(layers=3, remat=remat, unroll=unroll)
    variables, blocks = tiny.varied_lam(base), tiny.tokens(2, T + 1)
    found, expected = (loss_and_gradients(c, variables, blocks) for c in (config, base))
    tiny.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_rematerialised_elementwise_parts_need_less_memory() -> None:
    """At least two of the MLP's arrays, of every layer: its activation and what that is made of."""

    def temporaries(remat: str) -> int:
        config = tiny.model(layers=4, mlp_width=512, remat=remat)
        lowered = loss_and_gradients.lower(config, tiny.variables(config), tiny.tokens(2, 65))
        return lowered.compile().memory_analysis().temp_size_in_bytes

    array = 4 * 2 * 64 * 512  # bytes of [B, T, F] float32
    assert temporaries('elementwise') < temporaries('none') - 4 * 2 * array


def test_entropy_costs_the_outputs_nothing() -> None:
    variables, tokens = tiny.varied_lam(), tiny.tokens(2, T)
    without, with_entropy = (run(tiny.MODEL, variables, tokens, entropy=e) for e in (False, True))
    assert without.entropy is None
    np.testing.assert_allclose(with_entropy.hidden, without.hidden, rtol=1e-6, atol=1e-6)


def test_bfloat16_computes_on_float32_parameters() -> None:
    config = tiny.model(dtype='bfloat16')
    variables = tiny.variables()
    abstract = abstract_variables(config, tiny.mesh())
    assert {leaf.dtype.name for leaf in jax.tree.leaves(abstract)} == {'float32'}
    tokens = tiny.tokens(2, T)
    half, full = (run(c, variables, tokens) for c in (config, tiny.MODEL))
    assert half.hidden.dtype == half.head.dtype == jnp.bfloat16
    assert half.entropy.dtype == jnp.float32
    error = np.abs(half.hidden.astype(jnp.float32) - full.hidden)
    assert 0 < error.mean() < 2**-7  # hidden states have a root mean square of 1
    np.testing.assert_allclose(half.entropy, full.entropy, atol=2**-6)
    _, gradients = loss_and_gradients.eval_shape(config, variables, tokens)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(gradients)} == {'float32'}


def test_a_tied_head_is_the_embedding() -> None:
    config = tiny.model(tied_head=True)
    variables = tiny.variables(config)
    assert 'head' not in variables['params']
    output = run(config, variables, tiny.tokens(2, T))
    np.testing.assert_array_equal(output.head, variables['params']['embedding'].T)


def test_hidden_states_are_multiplied_before_the_head() -> None:
    """Logits of a tied head become smaller, and their gradients with them."""
    variables, tokens = tiny.variables(tiny.model(tied_head=True)), tiny.tokens(2, T)
    base = run(tiny.model(tied_head=True), variables, tokens)
    found = run(tiny.model(tied_head=True, logit_multiplier=0.3), variables, tokens)
    np.testing.assert_allclose(found.hidden, 0.3 * base.hidden, rtol=1e-6)
    np.testing.assert_array_equal(found.head, base.head)


@pytest.mark.parametrize('norm', ['rms', 'layer'])
def test_a_norm_of_the_embeddings_stands_before_the_first_layer(norm: str) -> None:
    """The same as other embeddings: normed ones."""
    config = tiny.model(embedding_norm=True, norm=norm)
    variables, tokens = tiny.variables(config), tiny.tokens(2, T)
    params = dict(variables['params'])
    weight = params.pop('embedding_norm')['scale']
    rows_VD = np.asarray(params['embedding'], np.float64)
    if norm == 'layer':
        rows_VD = rows_VD - rows_VD.mean(axis=-1, keepdims=True)
    rows_VD = rows_VD / np.sqrt(np.mean(rows_VD**2, axis=-1, keepdims=True) + 1e-5) * weight
    params['embedding'] = rows_VD.astype(np.float32)
    expected = run(tiny.model(norm=norm), {**variables, 'params': params}, tokens)
    found = run(config, variables, tokens)
    tiny.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    'changes',
    [
        {'block': 'parallel'},
        {'block': 'post'},
        {'block': 'both', 'norm_offset': True, 'embedding_multiplier': 32**0.5},
    ],
    ids=['parallel', 'post', 'both'],
)
def test_norms_stand_where_the_block_says(changes: dict[str, Any]) -> None:
    """Hidden states and entropies of the layers written out."""
    config, tokens = tiny.model(**changes), tiny.tokens(1, T)
    variables = tiny.varied_lam(config)
    multipliers_LTN = np.asarray(lam_of(variables))[:, None].repeat(T, axis=1)
    expected = by_hand.forward(config, variables['params'], tokens[0], multipliers_LTN)
    found = run(config, variables, tokens)
    np.testing.assert_allclose(found.hidden[0], expected.hidden, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.entropy[:, 0], expected.entropy, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ('block', 'remat'),
    [('parallel', 'elementwise'), ('post', 'full'), ('both', 'dots')],
    ids=['parallel', 'post', 'both'],
)
def test_every_parameter_of_a_block_is_trained(block: str, remat: str) -> None:
    """Recomputed layers included; a parallel block has one norm."""
    config = tiny.model(block=block, remat=remat, unroll=2)
    variables = tiny.varied_lam(config)
    assert ('mlp_norm' in variables['params']['layers']) == (block != 'parallel')
    _, gradients = loss_and_gradients(config, variables, tiny.tokens(2, T + 1))
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradients):
        assert np.all(np.isfinite(leaf)) and np.any(np.abs(leaf) > 1e-7), path


def test_weights_of_norms_less_one_start_at_zero() -> None:
    """A fresh model is the same one."""
    models = tiny.model(qk_norm=True), tiny.model(qk_norm=True, norm_offset=True)
    fresh = [fresh_variables(config, tiny.mesh(), seed=0) for config in models]
    assert not np.any(fresh[1]['params']['final_norm']['scale'])
    assert not np.any(fresh[1]['params']['layers']['attention']['query_norm']['scale'])
    outputs = [run(*pair, tiny.tokens(1, T)).hidden for pair in zip(models, fresh, strict=True)]
    np.testing.assert_array_equal(*outputs)


def test_every_option_at_once() -> None:
    """No output follows a later token, and every parameter gets a gradient (that of the keys' bias
    too: the norm of the keys comes after it)."""
    config = tiny.EVERY_OPTION
    np.testing.assert_array_equal(np.tril(influence(config)[0], -1), 0)
    _, gradients = loss_and_gradients(config, tiny.varied_lam(config), tiny.tokens(2, T + 1))
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradients):
        assert np.all(np.isfinite(leaf)) and np.any(np.abs(leaf) > 1e-7), path


@pytest.mark.parametrize('shape', [(4,), (2, 1), (1, 4), (4, 2)])
def test_lambda_of_a_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    variables = with_lam(tiny.variables(), jnp.ones(shape))
    with pytest.raises(ValueError, match=r'lam has shape .* takes \(2, 4\)'):
        run.eval_shape(tiny.MODEL, variables, tiny.tokens(1, T))


@pytest.mark.parametrize(('unroll', 'loops'), [(1, True), (None, False)])
def test_what_is_computed_again_cannot_be_merged_with_what_was(
    unroll: int | None, loops: bool
) -> None:
    """By a loop over the layers, or where they are unrolled by a barrier, of which there is none
    for CPUs."""
    config = tiny.model(layers=4, remat='full', unroll=unroll)
    variables, tokens = tiny.variables(config), tiny.tokens(2, 8)

    def total(params: Any) -> jax.Array:
        return jnp.sum(apply(config, {**variables, 'params': params}, tokens).hidden)

    traced = jax.jit(jax.grad(total)).trace(variables['params'])
    text = traced.lower(lowering_platforms=('cuda',)).as_text()
    assert ('stablehlo.while' in text) is loops
    assert ('optimization_barrier' in text) is not loops
