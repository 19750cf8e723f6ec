"""Training state: a step counter, the two collections of variables, optimizer state."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding

from nope import sharding
from nope.model import ModelConfig, Transformer

# {'params': nested arrays, 'lam': {'head': [L, N] float32}}
Variables = dict[str, Any]
COLLECTIONS = ('params', 'lam')


class TrainState(flax.struct.PyTreeNode):
    """step: int32 scalar, updates made so far; variables; opt_state of the optimizer."""

    step: jax.Array
    variables: Variables
    opt_state: optax.OptState


def abstract_variables(config: ModelConfig, mesh: Mesh) -> Variables:
    """Shapes, dtypes and shardings of a model's variables; nothing is computed."""
    leaves, tree = _abstract_leaves(config, mesh)
    return jax.tree.unflatten(tree, leaves)


@functools.lru_cache(maxsize=8)
def _abstract_leaves(
    config: ModelConfig, mesh: Mesh
) -> tuple[list[jax.ShapeDtypeStruct], jax.tree_util.PyTreeDef]:
    """Traced once for each model: JAX keeps some of every trace. As leaves, so that no two callers
    share a dict."""
    boxed = jax.eval_shape(lambda: _boxed_variables(config, jax.random.key(0)))
    variables = jax.tree.map(
        lambda leaf, place: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=place),
        sharding.unbox(boxed),
        sharding.of_boxed(mesh, boxed),
    )
    return jax.tree.flatten(variables)


def fresh_variables(config: ModelConfig, mesh: Mesh, seed: int) -> Variables:
    """Initialised variables, made where they will live. A function of config and seed alone."""
    with sharding.use(mesh):
        return _initialiser(config, mesh)(jax.random.key(seed))


@functools.lru_cache(maxsize=8)
def _initialiser(config: ModelConfig, mesh: Mesh) -> Callable[[jax.Array], Variables]:
    """Compiled once for all seeds: XLA keeps some of every compilation."""
    shardings = jax.tree.map(lambda leaf: leaf.sharding, abstract_variables(config, mesh))
    return jax.jit(
        lambda key: sharding.unbox(_boxed_variables(config, key)), out_shardings=shardings
    )


def fresh_state(
    variables: Variables, optimizer: optax.GradientTransformation, mesh: Mesh
) -> TrainState:
    """Step 0 around a copy of `variables` (a training step donates its state).

    The optimizer's moments lie where their variables do, the counters on every device.
    """
    # Not under jit: there the moments are zeros that depend on nothing, and get replicated.
    state = TrainState(
        jnp.zeros((), jnp.int32), jax.tree.map(jnp.copy, variables), optimizer.init(variables)
    )
    everywhere = sharding.replicated(mesh)
    return jax.tree.map(
        lambda leaf: (
            leaf if isinstance(leaf.sharding, NamedSharding) else sharding.put(leaf, everywhere)
        ),
        state,
    )


def lam_of(variables: Variables) -> jax.Array:
    """The lambda coefficients, [L, N] float32."""
    return variables['lam']['head']


def with_lam(variables: Variables, lam_LN: jax.Array) -> Variables:
    """`variables` with other lambda coefficients."""
    return {**variables, 'lam': {'head': lam_LN}}


def _boxed_variables(config: ModelConfig, key: jax.Array) -> Variables:
    variables = Transformer(config).init(key, jnp.zeros((1, 2), jnp.int32))
    return {name: variables[name] for name in COLLECTIONS}
