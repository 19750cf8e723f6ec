from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import ModelConfig, ModelOutput, Transformer
from nope.model.lam import LogLength
from nope.positions import DynamicNTK, NoPE, Position, Rotary
from nope.state import Variables, abstract_variables, fresh_variables, with_lam
from nope.step import block_loss
from tests import tiny

T = 12
ROTARY = Rotary(scaling=DynamicNTK(factor=2.0, train_length=8))


@functools.partial(jax.jit, static_argnames=('config', 'entropy'))  # shared, as the shapes are
def run(
    config: ModelConfig,
    variables: Variables,
    tokens: jax.Array,
    segments: jax.Array | None = None,
    positions: jax.Array | None = None,
    length: float | None = None,
    entropy: bool = True,
) -> ModelOutput:
    return Transformer(config).apply(
        variables,
        tokens,
        segments_BT=segments,
        positions_BT=positions,
        length=length,
        entropy=entropy,
    )


@functools.partial(jax.jit, static_argnums=0)
def loss_and_gradients(config: ModelConfig, variables: Variables, blocks: jax.Array) -> tuple:
    return jax.value_and_grad(lambda v: block_loss(config, v, blocks))(variables)


@pytest.mark.parametrize('position', [NoPE(), ROTARY], ids=['none', 'rotary'])
def test_no_output_depends_on_a_later_token(position: Position) -> None:
    """The gradient of output t with respect to the embedding of token s is 0 where s > t.

    Every position holds another token, so that a row of the embedding is one position.
    """
    config = tiny.model(position=position)
    variables = tiny.variables(config)
    direction_D = jax.random.normal(jax.random.key(0), (config.width,))

    @jax.jit
    @jax.jacrev
    def gradient(embedding_VD: jax.Array) -> jax.Array:
        params = {**variables['params'], 'embedding': embedding_VD}
        hidden = Transformer(config).apply({**variables, 'params': params}, jnp.arange(T)[None])
        return hidden.hidden[0] @ direction_D

    size_TS = np.abs(gradient(variables['params']['embedding'])[:, :T]).max(axis=-1)
    np.testing.assert_array_equal(np.triu(size_TS, 1), 0)
    assert np.all(size_TS[np.tril_indices(T)] > 1e-6)


@pytest.mark.parametrize(
    ('layers', 'position', 'kept'),
    [(1, NoPE(), True), (2, NoPE(), False), (1, ROTARY, False)],
    ids=['none-1', 'none-2', 'rotary-1'],
)
def test_one_layer_without_positions_sees_a_bag_of_tokens(
    layers: int, position: Position, kept: bool
) -> None:
    """Permuting earlier tokens leaves the last output of one NoPE layer, and of nothing else."""
    config = tiny.model(layers=layers, position=position)
    tokens = tiny.tokens(2, T)
    permuted = np.random.default_rng(1).permutation(tokens[:, :-1], axis=1)
    permuted = np.concatenate([permuted, tokens[:, -1:]], axis=1)
    hidden = [run(config, tiny.variables(config), t).hidden[:, -1] for t in (tokens, permuted)]
    if kept:
        np.testing.assert_allclose(hidden[0], hidden[1], rtol=1e-5, atol=1e-6)
    else:
        assert np.abs(hidden[0] - hidden[1]).max() > 1e-4


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
    config = tiny.model(lam=LogLength(train_length=4), position=ROTARY)
    variables, tokens = tiny.varied_lam(), tiny.tokens(2, 2 * T)
    whole = run(config, variables, tokens).hidden[:, :T]
    prefix = run(config, variables, tokens[:, :T], length=2.0 * T).hidden
    np.testing.assert_allclose(prefix, whole, rtol=1e-5, atol=1e-5)
    assert np.abs(run(config, variables, tokens[:, :T]).hidden - whole).max() > 1e-3


@pytest.mark.parametrize('position', [NoPE(), ROTARY], ids=['none', 'rotary'])
def test_lambda_folds_into_the_query_weights(position: Position) -> None:
    """Bit for bit with powers of two, which no product rounds."""
    config = tiny.model(position=position)
    lam_LN = jnp.asarray([[0.5, 1, 2, 4], [2, 0.25, 1, 2]])
    variables, tokens = tiny.variables(config), tiny.tokens(2, T)
    folded = jax.tree.map(lambda leaf: leaf, variables)
    attention = folded['params']['layers']['attention']
    attention['query'] = attention['query'] * lam_LN[:, None, :, None]
    tiny.assert_same(run(config, with_lam(variables, lam_LN), tokens), run(config, folded, tokens))


@pytest.mark.parametrize(('remat', 'unroll'), [('full', 2), ('dots', 0)])
def test_rematerialisation_and_unrolling_change_nothing(remat: str, unroll: int) -> None:
    base = tiny.model(layers=3)
    config = tiny.model(layers=3, remat=remat, unroll=unroll)
    variables, blocks = tiny.varied_lam(base), tiny.tokens(2, T + 1)
    found, expected = (loss_and_gradients(c, variables, blocks) for c in (config, base))
    tiny.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_the_default_attention_is_the_reference() -> None:
    default = tiny.model(attention='')
    variables, blocks = tiny.varied_lam(), tiny.tokens(2, T + 1)
    found, expected = (loss_and_gradients(c, variables, blocks) for c in (default, tiny.MODEL))
    tiny.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    found, expected = (run(c, variables, blocks[:, :-1]).entropy for c in (default, tiny.MODEL))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_entropy_is_at_most_that_of_uniform_attention() -> None:
    for factor in (0.0, 1.0, 4.0):
        variables = with_lam(tiny.variables(), jnp.full((2, 4), factor))
        entropy_LBNT = run(tiny.MODEL, variables, tiny.tokens(2, T)).entropy
        assert entropy_LBNT.shape == (2, 2, 4, T)
        bound_T = np.log(np.arange(1, T + 1))
        assert np.all(entropy_LBNT <= bound_T + 1e-6)
        if factor == 0:
            np.testing.assert_allclose(entropy_LBNT - bound_T, 0, atol=1e-6)


def test_entropy_costs_the_outputs_nothing() -> None:
    variables, tokens = tiny.varied_lam(), tiny.tokens(2, T)
    without, with_entropy = (run(tiny.MODEL, variables, tokens, entropy=e) for e in (False, True))
    assert without.entropy is None
    np.testing.assert_allclose(with_entropy.hidden, without.hidden, rtol=1e-6, atol=1e-6)


def test_tokens_see_their_own_segment_alone() -> None:
    config = tiny.model(position=Rotary())
    variables, tokens = tiny.varied_lam(config), tiny.tokens(2, T)
    segments = np.repeat([[3, 1]], [5, T - 5], axis=1).repeat(2, axis=0)
    positions = np.concatenate([np.arange(5), np.arange(T - 5)])[None].astype(np.int32)
    together = run(config, variables, tokens, segments, positions, length=float(T)).hidden
    for part in (slice(0, 5), slice(5, T)):
        alone = run(config, variables, tokens[:, part], length=float(T)).hidden
        np.testing.assert_allclose(together[:, part], alone, rtol=1e-5, atol=1e-5)


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
    _, gradients = jax.eval_shape(functools.partial(loss_and_gradients, config), variables, tokens)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(gradients)} == {'float32'}


def test_a_tied_head_is_the_embedding() -> None:
    config = tiny.model(tied_head=True)
    variables = tiny.variables(config)
    assert 'head' not in variables['params']
    output = run(config, variables, tiny.tokens(2, T))
    np.testing.assert_array_equal(output.head, variables['params']['embedding'].T)


def test_weights_start_with_the_papers_deviations() -> None:
    config = tiny.model(width=256, mlp_width=96, layers=4, vocab_size=256)
    params = fresh_variables(config, tiny.mesh(), seed=0)['params']
    layers = params['layers']
    weights = [params['embedding'], params['head'], layers['mlp']['gate'], layers['mlp']['up']]
    weights += [layers['attention'][name] for name in ('query', 'key', 'value')]
    for leaf in weights:
        np.testing.assert_allclose(leaf.std(), (2 / (5 * 256)) ** 0.5, rtol=0.02)
    for leaf in (layers['attention']['output'], layers['mlp']['down']):
        np.testing.assert_allclose(leaf.std(), 1 / (16 * 4), rtol=0.02)
    for name in ('attention_norm', 'mlp_norm'):
        np.testing.assert_array_equal(layers[name]['scale'], 1)
    assert not np.allclose(layers['mlp']['up'][0], layers['mlp']['up'][1])


@pytest.mark.parametrize('shape', [(4,), (2, 1), (1, 4), (4, 2)])
def test_lambda_of_a_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    variables = with_lam(tiny.variables(), jnp.ones(shape))
    with pytest.raises(ValueError, match=r'lam has shape .* takes \(2, 4\)'):
        jax.eval_shape(functools.partial(run, tiny.MODEL), variables, tiny.tokens(1, T))
