"""Model variables: the collections `params` and `lam`, abstract, fresh and on a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from nope import sharding
from nope.model import ModelConfig, Transformer

# {'params': nested arrays, 'lam': {'head': [L, N] float32}}
Variables = dict[str, Any]
COLLECTIONS = ('params', 'lam')


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


def lam_of(variables: Variables) -> jax.Array:
    """The lambda coefficients, [L, N] float32."""
    return variables['lam']['head']


def with_lam(variables: Variables, lam_LN: jax.Array) -> Variables:
    """`variables` with other lambda coefficients."""
    return {**variables, 'lam': {'head': lam_LN}}


def _boxed_variables(config: ModelConfig, key: jax.Array) -> Variables:
    variables = Transformer(config).init(key, jnp.zeros((1, 2), jnp.int32))
    return {name: variables[name] for name in COLLECTIONS}
