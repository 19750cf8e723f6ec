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
from nope.training import optim
from nope.training.state import fresh_state
from nope.training.step import make_step
from nope.variables import Variables
from tests import tiny, vectors

HEADSCALE = optim.OptimizerConfig(
    learning_rate=0.1, trains='lam', warmup_steps=20, decay_steps=200, bound=1.0
)


def config(**changes: Any) -> optim.OptimizerConfig:
    """A constant rate of 0.1, nothing else."""
    plain = optim.OptimizerConfig(
        learning_rate=0.1, schedule='linear_tail', decay_steps=1_000_000, clip=1e9
    )
    return dataclasses.replace(plain, **changes)


def variables() -> Variables:
    return {
        'params': {
            'mlp': jnp.asarray([[1.0, -2.0], [3.0, 0.5]]),
            'norm': {'scale': jnp.asarray([[1.0, 2.0]])},
        },
        'lam': {'head': jnp.asarray([[1.0, 1.2], [1.5, 2.0]])},
    }


def updated(
    config: optim.OptimizerConfig, gradients: list[Variables]
) -> tuple[Variables, optax.OptState]:
    transform = optim.make_optimizer(config)
    now = variables()
    state = transform.init(now)
    for gradient in gradients:
        updates, state = transform.update(gradient, state, now)
        trained, frozen = optim.split(now, config.trains)
        now = {**frozen, **optax.apply_updates(trained, optim.split(updates, config.trains)[0])}
    return now, state


def test_positions_train_alone() -> None:
    """The table's update is what a norm of its own gradient clips, with its own decay; nothing else
    moves or has moments."""
    alone = config(trains='position', clip=0.5, weight_decay=0.1)
    table = {'params': {'position': jnp.asarray([[1.0, -2.0]])}, 'lam': {'head': jnp.ones((1, 1))}}
    both = {**table, 'params': {**table['params'], 'mlp': jnp.full((2, 2), 7.0)}}
    gradients = jax.tree.map(lambda x: 3 * x, both)
    transform = optim.make_optimizer(alone)
    updates, state = transform.update(gradients, transform.init(both), both)
    plain = optim.make_optimizer(dataclasses.replace(alone, trains='params'))
    expected, _ = plain.update(jax.tree.map(lambda x: 3 * x, table), plain.init(table), table)
    tiny.assert_same(updates['params']['position'], expected['params']['position'])
    np.testing.assert_array_equal(updates['params']['mlp'], 0)
    np.testing.assert_array_equal(updates['lam']['head'], 0)
    sizes = sorted(np.size(leaf) for leaf in jax.tree.leaves(state))
    assert max(sizes) == 2


# Schedules


@pytest.mark.parametrize(('step', 'share'), vectors.entries('headscale_lr_multiplier'))
def test_headscale_schedule(step: str, share: float) -> None:
    """20 steps of warm-up, and a cosine to a tenth of the rate at step 200."""
    found = optim.learning_rate(HEADSCALE)(int(step))
    np.testing.assert_allclose(found, 0.1 * share, rtol=vectors.RTOL)


def test_the_headscale_schedule_stays_at_its_end() -> None:
    np.testing.assert_allclose(optim.learning_rate(HEADSCALE)(300), 0.01, rtol=1e-6)


def test_tinyllama_schedule() -> None:
    """Half a cosine over 1.4M steps: after 50,000 the rate has hardly left its peak."""
    schedule = optim.learning_rate(
        optim.OptimizerConfig(learning_rate=3.5e-4, warmup_steps=2000, decay_steps=1_430_512)
    )
    assert schedule(0) == 0
    np.testing.assert_allclose(schedule(1000), 1.75e-4, rtol=1e-6)
    np.testing.assert_allclose(schedule(2000), 3.5e-4, rtol=1e-6)
    done = (50_000 - 2000) / (1_430_512 - 2000)
    exact = 3.5e-5 + 0.5 * (1 + np.cos(np.pi * done)) * (3.5e-4 - 3.5e-5)
    np.testing.assert_allclose(exact, 3.4912e-4, rtol=1e-4)
    np.testing.assert_allclose(schedule(50_000), exact, rtol=1e-6)
    np.testing.assert_allclose(schedule(1_430_512), 3.5e-5, rtol=1e-6)


def test_linear_tail_schedule() -> None:
    schedule = optim.learning_rate(
        optim.OptimizerConfig(
            learning_rate=1.0,
            schedule='linear_tail',
            warmup_steps=10,
            decay_steps=100,
            tail_share=0.25,
            end_share=0.2,
        )
    )
    expected = {0: 0, 5: 0.5, 10: 1, 50: 1, 75: 1, 85: 0.68, 95: 0.36, 100: 0.2, 150: 0.2}
    found = {step: float(schedule(step)) for step in expected}
    assert found == pytest.approx(expected, rel=1e-6)


# What is updated


@pytest.mark.parametrize('trains', ['params', 'lam'])
def test_one_collection_is_updated(trains: str) -> None:
    ones = jax.tree.map(jnp.ones_like, variables())
    now, _ = updated(config(trains=trains), [ones])
    frozen = {'params': 'lam', 'lam': 'params'}[trains]
    tiny.assert_same(now[frozen], variables()[frozen])
    for new, old in zip(
        jax.tree.leaves(now[trains]), jax.tree.leaves(variables()[trains]), strict=True
    ):
        np.testing.assert_allclose(new, old - 0.1, rtol=1e-5)  # the first step of Adam


def test_both_collections_may_train_and_lambda_is_not_decayed() -> None:
    ones = jax.tree.map(jnp.ones_like, variables())
    for decayed in optim.DECAYED:
        now, state = updated(config(trains='all', weight_decay=0.5, decayed=decayed), [ones])
        alone, _ = updated(config(weight_decay=0.5, decayed=decayed), [ones])
        tiny.assert_close(now['params'], alone['params'], rtol=1e-6)
        np.testing.assert_allclose(now['lam']['head'], variables()['lam']['head'] - 0.1, rtol=1e-5)
        moments = sum(leaf.size for leaf in jax.tree.leaves(state) if leaf.ndim)
        assert moments == 2 * sum(leaf.size for leaf in jax.tree.leaves(variables()))


def test_both_collections_are_clipped_to_one_norm() -> None:
    gradients = jax.tree.map(lambda x: 7 * jnp.ones_like(x), variables())
    _, state = updated(config(trains='all', clip=0.5), [gradients])
    first_moment = optax.tree_utils.tree_get(state, 'mu')
    assert {*first_moment} == {'params', 'lam'}
    np.testing.assert_allclose(optax.tree.norm(first_moment), (1 - 0.9) * 0.5, rtol=1e-5)


def test_only_a_search_has_a_bound() -> None:
    for trains in ('params', 'all'):
        with pytest.raises(ValueError, match=r'^bound is 1\.0; .*only lam is bounded'):
            config(trains=trains, bound=1.0)


def test_the_frozen_collections_gradients_are_touched_by_nothing() -> None:
    """Not even by the clipping norm: NaN there changes nothing."""
    ones = jax.tree.map(jnp.ones_like, variables())
    poisoned = {**ones, 'params': jax.tree.map(lambda x: x * jnp.nan, ones['params'])}
    search = config(trains='lam', clip=0.1)
    tiny.assert_same(updated(search, [poisoned] * 3), updated(search, [ones] * 3))


@pytest.mark.parametrize('decayed', ['all', 'matrices'])
def test_weight_decay_reaches_what_it_should(decayed: str) -> None:
    zeros = jax.tree.map(jnp.zeros_like, variables())
    now, _ = updated(config(weight_decay=0.5, decayed=decayed), [zeros])
    old, shrunk = variables()['params'], 1 - 0.1 * 0.5
    np.testing.assert_allclose(now['params']['mlp'], old['mlp'] * shrunk, rtol=1e-6)
    norms = old['norm']['scale'] * (shrunk if decayed == 'all' else 1)
    np.testing.assert_allclose(now['params']['norm']['scale'], norms, rtol=1e-6)


@pytest.mark.parametrize('decayed', ['all', 'matrices'])
def test_weight_decay_of_matrices_spares_every_norm_and_bias(decayed: str) -> None:
    """Of a model that has all of them; stacked over layers, most have two axes or three."""
    model = dataclasses.replace(tiny.EVERY_OPTION, tied_head=False, sinks=True)
    transform = optim.make_optimizer(config(weight_decay=0.5, decayed=decayed))

    def decay(variables: Variables) -> Variables:
        zeros = jax.tree.map(jnp.zeros_like, variables)
        updates, _ = transform.update(zeros, transform.init(variables), variables)
        return optax.apply_updates(variables, updates)

    old = tiny.variables(model)
    new = jax.jit(decay)(old)
    matrices = {'embedding', 'head', 'position', 'query', 'key', 'value', 'output'}
    matrices |= {'gate', 'up', 'down'}
    spared = set()
    for path, leaf in jax.tree_util.tree_leaves_with_path(old['params']):
        found = new['params']
        for key in path:
            found = found[key.key]
        if path[-1].key in matrices or decayed == 'all':
            np.testing.assert_allclose(found, 0.95 * leaf, rtol=1e-6)
        else:
            np.testing.assert_array_equal(found, leaf)
            spared.add(path[-1].key)
    inner = {f'{name}_bias' for name in ('query', 'key', 'value', 'output', 'gate', 'up', 'down')}
    assert spared == (set() if decayed == 'all' else {'scale', 'bias', 'sinks', *inner})


def test_lambda_is_not_decayed_by_default() -> None:
    zeros = jax.tree.map(jnp.zeros_like, variables())
    tiny.assert_same(updated(HEADSCALE, [zeros] * 3)[0], variables())


# The bound


def noisy_gradients(steps: int) -> list[Variables]:
    draw = np.random.default_rng(0)
    return [
        jax.tree.map(lambda x: jnp.asarray(draw.normal(3, 3, x.shape), x.dtype), variables())
        for _ in range(steps)
    ]


@pytest.mark.parametrize('bound', [0.0, 0.3, 1.0])
def test_lambda_is_at_least_the_bound_after_every_step(bound: float) -> None:
    """Bit for bit, and those that reach the bound leave it again when pushed up."""
    gradients = noisy_gradients(30)
    lowest = [updated(config(trains='lam', bound=bound), gradients[:n])[0] for n in range(1, 31)]
    coefficients = np.stack([v['lam']['head'] for v in lowest])
    assert np.all(coefficients >= np.float32(bound))
    assert np.any(coefficients == np.float32(bound))
    upwards = jax.tree.map(lambda x: -jnp.ones_like(x), variables())
    risen, _ = updated(config(trains='lam', bound=bound), gradients + [upwards] * 40)
    assert np.all(np.asarray(risen['lam']['head']) > bound)


def test_without_a_bound_lambda_is_free() -> None:
    ones = jax.tree.map(jnp.ones_like, variables())
    now, _ = updated(config(trains='lam', bound=None), [ones] * 40)
    assert np.all(np.asarray(now['lam']['head']) < 0)


def test_a_bound_far_below_changes_nothing() -> None:
    gradients = noisy_gradients(10)
    free, bounded = (
        updated(config(trains='lam', bound=bound), gradients)[0] for bound in (None, -100.0)
    )
    tiny.assert_close(bounded, free, rtol=1e-5, atol=1e-5)


def test_the_straight_through_clamp_lets_the_gradient_pass() -> None:
    lam_LN = jnp.asarray([[0.3, 1.0, 1.7]])
    clamp = functools.partial(optim.clamp_straight_through, bound=1.0)
    np.testing.assert_array_equal(clamp(lam_LN), np.maximum(lam_LN, 1))
    weights = jnp.asarray([[2.0, 3.0, 5.0]])
    gradient = jax.grad(lambda lam: jnp.sum(weights * clamp(lam)))(lam_LN)
    np.testing.assert_array_equal(gradient, weights)
    assert optim.clamp_straight_through(lam_LN, None) is lam_LN


def test_the_straight_through_copy_is_free() -> None:
    ones = jax.tree.map(jnp.ones_like, variables())
    now, _ = updated(config(trains='lam', bound=1.0, straight_through=True), [ones] * 10)
    assert np.all(np.asarray(now['lam']['head'])[0] < 1)


# Cost and errors


def test_the_search_of_lambda_costs_two_thirds_of_a_step() -> None:
    """A forward pass and the gradients of activations; none of weights. Compiled without a
    loop, whose body would be counted once."""
    model = tiny.model(width=64, head_dim=16, mlp_width=192, unroll=None)
    state = tiny.variables(model)

    def flops(optimizer: optim.OptimizerConfig) -> float:
        start, frozen = fresh_state(state, optimizer, tiny.mesh())
        step = jax.jit(make_step(model, optimizer))
        batch = Batch.of_blocks(jnp.zeros((1, 8, 17), jnp.int32))
        compiled = step.lower(start, frozen, batch).compile()
        analysis = compiled.cost_analysis()
        assert analysis is not None
        return analysis['flops']

    assert flops(HEADSCALE) < 0.75 * flops(config())


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'trains': 'everything'}, r"trains is 'everything'; accepted: params, lam"),
        ({'schedule': 'linear'}, r"schedule is 'linear'; accepted: cosine, linear_tail"),
        ({'decayed': 'some'}, r"decayed is 'some'"),
        ({'learning_rate': 0.0}, 'learning_rate is 0.0; it must be finite and above 0'),
        ({'learning_rate': float('nan')}, 'learning_rate is nan'),
        ({'warmup_steps': 0, 'decay_steps': 0}, 'decay_steps is 0; accepted: 1 or more'),
        ({'warmup_steps': 5, 'decay_steps': 5}, 'warmup_steps is 5; accepted: 0 to 4'),
        ({'warmup_steps': -1}, 'warmup_steps is -1'),
        ({'clip': 0.0}, 'clip is 0.0'),
        ({'b1': 1.0}, 'b1 is 1.0; accepted: 0 and more, below 1'),
        ({'b2': 1.0}, 'b2 is 1.0; accepted: 0 and more, below 1'),
        ({'bound': 1.0}, r"bound is 1.0; .* trains 'params'; .* lam"),
        ({'trains': 'lam', 'entropy_penalty': 0.1}, r"entropy_penalty is 0\.1; .* 'lam' alone"),
        ({'entropy_penalty': float('nan')}, r'entropy_penalty is nan; accepted: 0 or more'),
        ({'tied': True}, r"tied is True; accepted where lam alone trains, not 'params'"),
        ({'trains': 'lam', 'straight_through': True}, r'straight_through .* bound'),
    ],
)
def test_errors_name_the_field_and_what_is_accepted(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**changes)
