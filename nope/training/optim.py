"""Optimizer: AdamW, schedules, the trained collection, and the bound on lambda."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nope.runtime.errors import FieldError, one_of
from nope.runtime.libraries import optax
from nope.training.guard import guarded
from nope.variables import COLLECTIONS, TABLE, Variables, with_lam_from

SCHEDULES = ('cosine', 'linear_tail')
DECAYED = ('all', 'matrices')
TRAINS = (*COLLECTIONS, TABLE, 'all')
STOP, SKIP = 'stop', 'skip'

Schedule = Callable[[Any], jax.Array]


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """AdamW with a schedule.

    trains: the collection that is updated, 'params' or 'lam', the other being frozen, or 'all'; or
        'position', the learned table of positions among the parameters.
    schedule: 'cosine' falls to end_share * learning_rate at step `decay_steps`;
        'linear_tail' stays at the peak and falls linearly over the last `tail_share` of it.
    decayed: what weight decay applies to: 'all' (TinyLlama) or 'matrices' (not the norms); never to
        lambda where both train.
    bound: smallest lambda coefficient, or None; only where lam alone trains.
    straight_through: clamp lambda in the forward pass instead of projecting it after the
        update: the gradient passes the clamp unchanged and the trained copy is free. What comes of
        the training is the clamped one (`as_used`).
    tied: lambda is one coefficient (of each number of the law) for all heads where it acts, their
        mean (`tied_lam`); only where lam alone trains. Heads that start alike stay alike.
    on_bad: what a bad step does: 'stop' the run, or 'skip' its update (`nope.training.guard`).
    spike: besides what is not finite, a loss so many standard deviations above its running mean
        is bad; None for none.
    entropy_length: L of a search whose loss is the gap between the entropies of windows and of
        their first L tokens (`nope.training.entropy`); None for the cross-entropy.
    entropy_penalty: nats of loss for every nat of mean attention entropy of the heads without
        position, 0 or more; where weights train.
    """

    learning_rate: float
    trains: str = 'params'
    schedule: str = 'cosine'
    warmup_steps: int = 0
    decay_steps: int = 1
    tail_share: float = 0.25
    end_share: float = 0.1
    b1: float = 0.9
    b2: float = 0.95
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    decayed: str = 'all'
    clip: float = 1.0
    bound: float | None = None
    straight_through: bool = False
    tied: bool = False
    on_bad: str = STOP
    spike: float | None = None
    entropy_length: int | None = None
    entropy_penalty: float = 0.0

    @property
    def freezes(self) -> bool:
        """Whether the weights stay as they are: lambda trains alone, or the table of positions."""
        return self.trains in ('lam', TABLE)

    def __post_init__(self) -> None:
        for name, value, accepted in (
            ('trains', self.trains, TRAINS),
            ('schedule', self.schedule, SCHEDULES),
            ('decayed', self.decayed, DECAYED),
            ('on_bad', self.on_bad, (STOP, SKIP)),
        ):
            if value not in accepted:
                raise FieldError(name, value, one_of(accepted))
        for name in ('learning_rate', 'epsilon', 'clip'):
            if not 0 < getattr(self, name) < math.inf:
                raise FieldError(name, getattr(self, name), 'it must be finite and above 0')
        for name in ('b1', 'b2'):
            if not 0 <= getattr(self, name) < 1:
                raise FieldError(name, getattr(self, name), 'accepted: 0 and more, below 1')
        for name in ('end_share', 'tail_share'):
            if not 0 <= getattr(self, name) <= 1:
                raise FieldError(name, getattr(self, name), 'accepted: 0 to 1')
        if not 0 <= self.weight_decay < math.inf:
            raise FieldError('weight_decay', self.weight_decay, 'it must be finite, 0 or more')
        if self.spike is not None and not 0 < self.spike < math.inf:
            raise FieldError('spike', self.spike, 'it must be finite and above 0, or None')
        if self.decay_steps < 1:
            raise FieldError('decay_steps', self.decay_steps, 'accepted: 1 or more')
        if not 0 <= self.warmup_steps < self.decay_steps:
            raise FieldError(
                'warmup_steps',
                self.warmup_steps,
                f'accepted: 0 to {self.decay_steps - 1}, less than the {self.decay_steps} steps',
            )
        if self.bound is not None and self.trains != 'lam':
            raise FieldError(
                'bound', self.bound, f'the optimizer trains {self.trains!r}; only lam is bounded'
            )
        if self.entropy_length is not None and (self.entropy_length < 1 or self.trains != 'lam'):
            rule = f'accepted: 1 or more where lam alone trains ({self.trains!r} does), or None'
            raise FieldError('entropy_length', self.entropy_length, rule)
        if not 0 <= self.entropy_penalty < math.inf:
            raise FieldError('entropy_penalty', self.entropy_penalty, 'accepted: 0 or more')
        if self.entropy_penalty and self.freezes:
            rule = f'accepted: 0 where {self.trains!r} alone trains'
            raise FieldError('entropy_penalty', self.entropy_penalty, rule)
        if self.tied and self.trains != 'lam':
            raise FieldError('tied', True, f'accepted where lam alone trains, not {self.trains!r}')
        if self.straight_through and self.bound is None:
            raise FieldError('straight_through', True, 'it needs a bound to clamp at')

    @property
    def guarded(self) -> bool:
        """Whether the optimizer's state includes the bad-step guard. Skipping and spike detection
        need it."""
        return self.on_bad == SKIP or self.spike is not None


def learning_rate(config: OptimizerConfig) -> Schedule:
    """Learning rate by step, from 0. Step 0 of a warm-up has rate 0, as in the papers' code."""
    peak, end = config.learning_rate, config.learning_rate * config.end_share

    def cosine(step: jax.Array) -> jax.Array:
        done = (step - config.warmup_steps) / (config.decay_steps - config.warmup_steps)
        return end + 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(done, 1.0))) * (peak - end)

    def linear_tail(step: jax.Array) -> jax.Array:
        tail = max(config.tail_share * config.decay_steps, 1.0)
        left = jnp.clip((config.decay_steps - step) / tail, 0.0, 1.0)
        return end + left * (peak - end)

    after = {'cosine': cosine, 'linear_tail': linear_tail}[config.schedule]

    def schedule(step: Any) -> jax.Array:
        step = jnp.asarray(step, jnp.float32)
        warming = peak * step / max(config.warmup_steps, 1)
        return jnp.where(step < config.warmup_steps, warming, after(step))

    return schedule


def make_optimizer(config: OptimizerConfig) -> optax.GradientTransformation:
    """Optimizer over {'params', 'lam'}: one collection trains and the other is set to zero, or both
    train, clipped together; of the parameters perhaps the table of positions alone.

    The frozen collection's gradients are touched by nothing (the clipping norm is taken inside the
    partition), so under jit they are never computed, and it has no moments. Where the config is
    `guarded`, updating takes `loss` and `grad_norm` too.
    """
    decay_mask: Any = _matrices if config.decayed == 'matrices' else None
    if config.trains == 'all':  # the same parameters decay as without lambda, and lambda never
        of_params = decay_mask or (lambda params: True)
        decay_mask = lambda variables: {'params': of_params(variables['params']), 'lam': False}  # noqa: E731
    links = [
        optax.clip_by_global_norm(config.clip),
        optax.adamw(
            learning_rate(config),
            b1=config.b1,
            b2=config.b2,
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            mask=decay_mask,
        ),
    ]
    if config.bound is not None and not config.straight_through:
        links.append(keep_at_least(config.bound))
    transform = optax.chain(*links)
    if config.trains == TABLE:
        transform = optax.multi_transform(
            {TABLE: transform, 'frozen': optax.set_to_zero()},
            lambda variables: {
                'params': {n: n if n == TABLE else 'frozen' for n in variables['params']},
                'lam': 'frozen',
            },
        )
    elif config.trains != 'all':
        frozen = {'params': 'lam', 'lam': 'params'}[config.trains]
        transform = optax.multi_transform(
            {config.trains: transform, frozen: optax.set_to_zero()},
            {name: name for name in COLLECTIONS},
        )
    return guarded(transform, config.spike) if config.guarded else transform


def split(variables: Variables, trains: str) -> tuple[Variables, Variables]:
    """Trained and frozen collections: {'lam': ...} and {'params': ...} or the reverse, or all of it
    and {}. Parameters of which a part trains are among the trained."""
    trains = 'params' if trains == TABLE else trains
    trained = {n: tree for n, tree in variables.items() if trains in (n, 'all')}
    return trained, {n: tree for n, tree in variables.items() if n not in trained}


def with_frozen_weights(variables: Variables) -> Variables:
    """`variables` of which the table of positions alone has a gradient."""
    params = {
        name: tree if name == TABLE else jax.lax.stop_gradient(tree)
        for name, tree in variables['params'].items()
    }
    return {**variables, 'params': params}


def keep_at_least(bound: float) -> optax.GradientTransformation:
    """Projection p := max(p + u, bound) as the last link of a chain, which gives the difference. It
    is exact for the bounds 0 and 1, else to the rounding of p + u."""

    def update(
        updates: optax.Updates, state: optax.EmptyState, params: optax.Params | None = None
    ) -> tuple[optax.Updates, optax.EmptyState]:
        bounded = jax.tree.map(lambda u, p: jnp.maximum(p + u, bound) - p, updates, params)
        return bounded, state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def clamp_straight_through(lam_LN: jax.Array, bound: float | None) -> jax.Array:
    """max(lam, bound) with the gradient of the identity."""
    if bound is None:
        return lam_LN
    return lam_LN + jax.lax.stop_gradient(jnp.maximum(lam_LN, bound) - lam_LN)


def tied_lam(lam_LN: jax.Array, acts_LN: np.ndarray) -> jax.Array:
    """The mean of the heads where lambda acts, in each of them; the others as they are.

    lam_LN: coefficients [L, N] or [L, N, C], each number with a mean of its own. acts_LN: bool.
    """
    acts = acts_LN.reshape(acts_LN.shape + (1,) * (lam_LN.ndim - 2))
    mean = jnp.sum(jnp.where(acts, lam_LN, 0.0), axis=(0, 1)) / max(np.sum(acts_LN), 1)
    return jnp.where(acts, mean, lam_LN)


def as_used(config: OptimizerConfig, variables: Variables) -> Variables:
    """Variables of a training's state as its forward pass uses them: of a straight-through search
    lambda is the clamped one."""
    if config.bound is None or not config.straight_through:
        return variables
    return with_lam_from(variables, config.bound)


def _matrices(params: Any) -> Any:
    """Mask of matrices: under the scan over layers a norm's weight, [L, D], is none, nor are the
    sinks of heads, [L, N]."""
    vectors = 'scale', 'bias', 'sinks'
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: not path[-1].key.endswith(vectors) and leaf.ndim >= 2, params
    )
