from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from nope.data import Batch
from nope.losses import token_loss
from nope.model import Transformer
from nope.positions import Alibi, Learned, NoPE, Position, RoPE, Split
from nope.training import optim
from nope.training.optim import OptimizerConfig
from nope.training.state import TrainState, fresh_state
from nope.training.step import Metrics, Step, batch_loss, make_step
from nope.variables import Variables, lam_of, with_lam, with_table
from tests import tiny

T = 8
BLOCKS = tiny.tokens(8, T + 1)
# Unequal weights, none in the first two sequences, and so in the first of four micro-batches.
WEIGHTS = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], (8, T)).astype(np.float32)
WEIGHTS[:2] = 0
PLAIN = Batch.of_blocks(BLOCKS)
WEIGHTED = PLAIN._replace(weights=WEIGHTS)
PRETRAIN = OptimizerConfig(learning_rate=1e-2, schedule='linear_tail', decay_steps=1000)
SEARCH = dataclasses.replace(PRETRAIN, trains='lam', clip=1e9)


@functools.cache
def step_of(optimizer: OptimizerConfig) -> Step:
    """Compiled once for all tests."""
    return jax.jit(make_step(tiny.MODEL, optimizer))


def start(
    optimizer: OptimizerConfig, variables: Variables | None = None
) -> tuple[TrainState, Variables]:
    return fresh_state(variables or tiny.varied_lam(), optimizer, tiny.mesh())


def micro(parts: int, batch: Batch = WEIGHTED) -> Any:
    """The batch in so many micro-batches."""
    return jax.tree.map(lambda array: array.reshape(parts, -1, array.shape[-1]), batch)


def once(optimizer: OptimizerConfig, batch: Batch) -> tuple[TrainState, Metrics]:
    return step_of(optimizer)(*start(optimizer), batch)


@pytest.fixture(scope='module')
def loss_and_gradients() -> tuple:
    """Of BLOCKS, with respect to everything."""
    loss = functools.partial(batch_loss, tiny.MODEL)
    return jax.jit(jax.value_and_grad(loss))(tiny.varied_lam(), PLAIN)


def first_moment(state: TrainState) -> Variables:
    """Adam's; after one step a tenth of the gradient."""
    return optax.tree_utils.tree_get(state.opt_state, 'mu')


def clipped(gradients: Variables) -> Variables:
    scale = min(1.0, 1 / float(optax.tree.norm(gradients)))
    return jax.tree.map(lambda g: scale * g, gradients)


def test_the_loss_is_the_mean_cross_entropy_of_the_next_token(loss_and_gradients: tuple) -> None:
    output = jax.jit(Transformer(tiny.MODEL).apply)(tiny.varied_lam(), BLOCKS[:, :-1])
    logits_BTV = np.asarray(output.hidden, np.float64) @ np.asarray(output.head, np.float64)
    log_sum_BT = np.log(np.exp(logits_BTV).sum(-1))
    picked_BT = np.take_along_axis(logits_BTV, BLOCKS[:, 1:, None], axis=-1)[..., 0]
    nll_BT = token_loss(output.hidden, output.head, jnp.asarray(BLOCKS[:, 1:]))
    np.testing.assert_allclose(nll_BT, log_sum_BT - picked_BT, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(loss_and_gradients[0], np.mean(log_sum_BT - picked_BT), rtol=1e-5)


def test_a_step_of_the_positions_alone_leaves_the_weights_bit_for_bit() -> None:
    """From a table of zeros, with which the loss is that of the model without positions."""
    config = tiny.model(position=Learned(2 * T))
    variables = with_table(config, tiny.varied_lam(), tiny.mesh())
    optimizer = dataclasses.replace(PRETRAIN, trains='position', weight_decay=0.1)
    state, frozen = start(optimizer, variables)
    state, metrics = jax.jit(make_step(config, optimizer))(state, frozen, micro(1, PLAIN))
    _, plain = once(PRETRAIN, micro(1, PLAIN))
    np.testing.assert_array_equal(metrics['loss'], plain['loss'])
    found = dict(state.trained['params'])
    table = np.asarray(found.pop('position'))
    tiny.assert_same(found, tiny.varied_lam()['params'])
    assert np.all(np.abs(table[:T]).max(axis=-1) > 0)
    np.testing.assert_array_equal(table[T:], 0)
    gradient = jax.grad(functools.partial(batch_loss, config))(variables, PLAIN)
    norm = optax.tree.norm(gradient['params']['position'])
    np.testing.assert_allclose(metrics['grad_norm'], norm, rtol=1e-5)


def test_one_step(loss_and_gradients: tuple) -> None:
    """Metrics are those of the batch, gradients are clipped, and the step counts one."""
    loss, gradients = loss_and_gradients
    norm = optax.tree.norm(gradients['params'])
    assert norm > 1
    state, metrics = once(PRETRAIN, micro(1, PLAIN))
    assert state.step == 1
    measured = dict.fromkeys(('loss', 'grad_norm', 'learning_rate'), ((), 'float32'))
    assert {name: (m.shape, m.dtype.name) for name, m in metrics.items()} == measured | {
        'bad': ((), 'bool')
    }
    assert not metrics['bad']
    np.testing.assert_allclose(metrics['loss'], loss, rtol=1e-6)
    np.testing.assert_allclose(metrics['grad_norm'], norm, rtol=1e-5)
    np.testing.assert_allclose(metrics['learning_rate'], 1e-2, rtol=1e-6)
    expected = jax.tree.map(lambda g: 0.1 * g, clipped(gradients['params']))
    tiny.assert_close(first_moment(state)['params'], expected, rtol=1e-4, atol=1e-7)


def test_weights_and_lambda_may_train_together(loss_and_gradients: tuple) -> None:
    """The norm and the clipping are of both; nothing is frozen."""
    loss, gradients = loss_and_gradients
    optimizer = dataclasses.replace(PRETRAIN, trains='all')
    assert not start(optimizer)[1]
    state, metrics = once(optimizer, micro(1, PLAIN))
    np.testing.assert_allclose(metrics['loss'], loss, rtol=1e-6)
    np.testing.assert_allclose(metrics['grad_norm'], optax.tree.norm(gradients), rtol=1e-5)
    expected = jax.tree.map(lambda g: 0.1 * g, clipped(gradients))
    tiny.assert_close(first_moment(state), expected, rtol=1e-4, atol=1e-7)
    assert np.all(lam_of(state.trained) != lam_of(tiny.varied_lam()))


def test_the_weighted_loss_and_its_gradient_are_those_of_the_definition() -> None:
    """sum(w nll) / sum(w), by NumPy in float64; the gradient of the head. Logits are capped."""
    cap, model = 2.0, tiny.model(logit_cap=2.0)
    loss = functools.partial(batch_loss, model)
    value, gradients = jax.jit(jax.value_and_grad(loss))(tiny.varied_lam(), WEIGHTED)
    output = jax.jit(Transformer(model).apply)(tiny.varied_lam(), WEIGHTED.tokens)
    hidden_BTD, head_DV = (np.asarray(x, np.float64) for x in (output.hidden, output.head))
    share_BTV = np.tanh(hidden_BTD @ head_DV / cap)
    exp_BTV = np.exp(cap * share_BTV)
    probs_BTV = exp_BTV / exp_BTV.sum(-1, keepdims=True)
    hit_BTV = np.eye(tiny.MODEL.vocab_size)[WEIGHTED.targets]
    shares_BT = WEIGHTS / WEIGHTS.sum(dtype=np.float64)
    expected = -np.sum(shares_BT * np.log((probs_BTV * hit_BTV).sum(-1)))
    d_logits_BTV = shares_BT[..., None] * (probs_BTV - hit_BTV) * (1 - share_BTV**2)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(
        gradients['params']['head'],
        np.einsum('BTD,BTV->DV', hidden_BTD, d_logits_BTV),
        rtol=1e-4,
        atol=1e-7,
    )


@pytest.mark.parametrize(
    'position',
    [*(pytest.param(x, marks=pytest.mark.slow) for x in (NoPE(), Learned(T))), RoPE()],
    ids=lambda p: type(p).__name__,
)
def test_documents_apart_are_documents_in_passes_of_their_own(position: Position) -> None:
    """The first five tokens and the other four of every block: loss and gradients."""
    config = tiny.model(position=position, attention=None)
    begins = np.zeros((8, T + 1), bool)
    begins[:, [0, 5]] = True

    def loss(variables: Variables, *batches: Batch) -> jax.Array:
        sizes = [batch.targets.shape[1] for batch in batches]
        means = [batch_loss(config, variables, batch) for batch in batches]
        return sum(n * mean for n, mean in zip(sizes, means, strict=True)) / sum(sizes)

    variables = tiny.varied_lam(config)
    gradient = jax.jit(jax.value_and_grad(loss))
    found = gradient(variables, Batch.of_documents(BLOCKS, begins))
    parts = Batch.of_blocks(BLOCKS[:, :5]), Batch.of_blocks(BLOCKS[:, 5:])
    tiny.assert_close(found, gradient(variables, *parts), rtol=1e-4, atol=1e-6)
    joined, _ = gradient(variables, PLAIN)
    assert abs(joined - found[0]) > 1e-3


@pytest.mark.parametrize(
    'optimizer',
    [PRETRAIN, pytest.param(SEARCH, marks=pytest.mark.slow)],
    ids=['pretraining', 'search'],
)
def test_micro_batches_of_unequal_weight_make_one_batch(optimizer: OptimizerConfig) -> None:
    """One of them weighs nothing. The mean of their means would be another number."""
    whole, whole_metrics = once(optimizer, micro(1))
    parts, parts_metrics = once(optimizer, micro(4))
    tiny.assert_close(parts_metrics, whole_metrics, rtol=1e-5)
    tiny.assert_close(first_moment(parts), first_moment(whole), rtol=1e-4, atol=1e-7)
    loss = jax.jit(functools.partial(batch_loss, tiny.MODEL, tiny.varied_lam()))
    means = [loss(jax.tree.map(lambda array, i=i: array[i], micro(4))) for i in range(4)]
    assert means[0] == 0
    assert abs(np.mean(means) - whole_metrics['loss']) > 0.1


def test_a_batch_without_weight_changes_nothing() -> None:
    """Its loss and gradients are 0, not NaN."""
    nothing = micro(4, WEIGHTED._replace(weights=0 * WEIGHTS))
    state, metrics = once(PRETRAIN, nothing)
    assert metrics['loss'] == metrics['grad_norm'] == 0
    assert not metrics['bad']
    tiny.assert_same(state.trained['params'], tiny.varied_lam()['params'])


def test_the_search_takes_the_gradient_of_lambda_alone(loss_and_gradients: tuple) -> None:
    """It is the one that differentiating everything gives."""
    gradient_LN = lam_of(loss_and_gradients[1])
    state, metrics = once(SEARCH, micro(1, PLAIN))
    np.testing.assert_allclose(metrics['grad_norm'], np.linalg.norm(gradient_LN), rtol=1e-5)
    found_LN = first_moment(state)['lam']['head']
    np.testing.assert_allclose(found_LN, 0.1 * gradient_LN, rtol=1e-4, atol=1e-7)
    assert state.trained.keys() == {'lam'}
    assert np.all(lam_of(state.trained) != lam_of(tiny.varied_lam()))


def test_a_straight_through_search_sees_lambda_clamped() -> None:
    """The loss is that at the bound, the gradient passes it, and the copy moves freely."""
    through = dataclasses.replace(SEARCH, bound=1.0, straight_through=True)
    measured, moves = [], []
    for optimizer, value in ((through, 0.4), (SEARCH, 1.0)):
        variables = with_lam(tiny.variables(), jnp.full((2, 4), value))
        state, metrics = step_of(optimizer)(*start(optimizer, variables), micro(1, PLAIN))
        measured.append(metrics)
        moves.append(lam_of(state.trained) - value)
    tiny.assert_close(*measured, rtol=1e-6)
    np.testing.assert_allclose(*moves, atol=1e-6)
    assert np.all(np.abs(moves[0]) > 1e-3)


def test_a_tied_search_moves_one_number_along_the_sum_of_the_gradients() -> None:
    """In the heads where lambda acts, from the loss at their mean; the others stay."""
    half = Split(Alibi(), 0.5)
    model = dataclasses.replace(tiny.MODEL, position=half, lam_layers='nope')
    acts_LN = np.arange(4) >= 2
    variables = with_lam(tiny.variables(), jnp.full((2, 4), 1.3))
    batch = micro(1, PLAIN)
    moved = {}
    for tied in (False, True):
        optimizer = dataclasses.replace(SEARCH, tied=tied)
        state, _ = jax.jit(make_step(model, optimizer))(*start(optimizer, variables), batch)
        moved[tied] = first_moment(state)['lam']['head']
        assert np.all((lam_of(state.trained) == lam_of(variables)) == ~acts_LN)
    mean = np.sum(moved[False]) / 4
    np.testing.assert_allclose(moved[True][:, 2:], mean, rtol=1e-5)
    assert np.unique(moved[True][:, 2:]).size == 1 and np.std(moved[False][:, 2:]) > 0


@pytest.mark.parametrize('batch', [PLAIN, WEIGHTED], ids=['plain', 'weighted'])
def test_a_penalty_adds_the_entropy_of_heads_without_position(batch: Batch) -> None:
    """To the loss and its gradient, and the same in micro-batches."""
    model = dataclasses.replace(tiny.MODEL, position=Split(Alibi(), 0.5))
    variables, found = tiny.variables(), {}
    penalised = dataclasses.replace(PRETRAIN, entropy_penalty=0.7)
    for name, optimizer, parts in (
        ('none', PRETRAIN, 1), ('one', penalised, 1), ('four', penalised, 4)
    ):  # fmt: skip
        step = jax.jit(make_step(model, optimizer))
        found[name] = step(*start(optimizer, variables), micro(parts, batch))

    def mean(params: Any) -> jax.Array:
        output = Transformer(model).apply(
            {**variables, 'params': params}, jnp.asarray(batch.tokens), entropy=True
        )
        rows_B = jnp.mean(output.entropy[:, :, 2:], axis=(0, 2, 3))
        weights_B = None if batch.weights is None else batch.weights.sum(axis=1)
        return jnp.average(rows_B, weights=weights_B)

    entropy, gradient = jax.value_and_grad(mean)(variables['params'])
    losses = {name: metrics['loss'] for name, (_, metrics) in found.items()}
    np.testing.assert_allclose(losses['one'] - losses['none'], 0.7 * entropy, rtol=1e-4)
    first = {name: first_moment(state)['params'] for name, (state, _) in found.items()}
    scale = {name: jnp.minimum(1.0, 1 / m['grad_norm']) for name, (_, m) in found.items()}
    added = jax.tree.map(
        lambda one, none: one / (0.1 * scale['one']) - none / (0.1 * scale['none']),
        first['one'], first['none'],
    )  # fmt: skip
    tiny.assert_close(added, jax.tree.map(lambda g: 0.7 * g, gradient), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(losses['four'], losses['one'], rtol=1e-5)
    tiny.assert_close(first['four'], first['one'], rtol=1e-3, atol=1e-6)


def test_tied_lambda_is_the_mean_of_each_number() -> None:
    lam_LNC = jnp.arange(16.0).reshape(2, 4, 2)
    acts_LN = np.array([[True, False, False, False], [False, False, False, True]])
    found_LNC = optim.tied_lam(lam_LNC, acts_LN)
    np.testing.assert_array_equal(found_LNC[acts_LN], [[7, 8], [7, 8]])
    np.testing.assert_array_equal(found_LNC[~acts_LN], lam_LNC[~acts_LN])


def test_a_rule_is_learned() -> None:
    """Counting by one, from random starts: chance is ln 64 = 4.16 nats."""
    (state, frozen), losses = start(PRETRAIN), []
    for k in range(80):
        batch = micro(1, Batch.of_blocks(tiny.counting(8, T + 1, seed=k)))
        state, metrics = step_of(PRETRAIN)(state, frozen, batch)
        losses.append(float(metrics['loss']))
    assert losses[0] > 4
    assert np.mean(losses[-5:]) < 1


@pytest.mark.parametrize(
    ('unroll', 'optimizer', 'recomputes'),
    [(1, SEARCH, True), (1, PRETRAIN, False), (None, SEARCH, False)],
)
def test_only_a_search_in_a_loop_recomputes_norms_unasked(
    unroll: int | None, optimizer: OptimizerConfig, recomputes: bool
) -> None:
    """It is the step of a model that asks for it."""

    def traced(remat: str) -> str:
        model = tiny.model(unroll=unroll, remat=remat)
        state, frozen = start(optimizer)
        return str(jax.make_jaxpr(make_step(model, optimizer))(state, frozen, micro(1)))

    assert (traced('none') == traced('elementwise')) == recomputes
