"""Model variables: the collections `params` and `lam`, abstract, fresh and on a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util
from jax.sharding import Mesh

from nope import sharding
from nope.model import ModelConfig, Transformer, lam
from nope.runtime.compiling import run_once
from nope.runtime.seeds import check_seed

# {'params': nested arrays, 'lam': {'head': [L, N] float32}}; [L, N, C] for C > 1 numbers a head
Variables = dict[str, Any]
COLLECTIONS = ('params', 'lam')
TABLE = 'position'  # the learned table of positions among the parameters


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


def logical_axes(config: ModelConfig) -> Variables:
    """Names of the axes of a model's variables, a PartitionSpec for each; nothing is computed."""
    return nn.get_partition_spec(
        jax.eval_shape(lambda: _boxed_variables(config, jax.random.key(0)))
    )


def fresh_variables(config: ModelConfig, mesh: Mesh, seed: int) -> Variables:
    """Initialised variables, made where they will live. A function of config and seed alone.
    FieldError for a seed outside of 32 bits (`nope.runtime.seeds`)."""
    check_seed(seed)
    with sharding.use(mesh):
        return _initialiser(config, mesh)(jax.random.key(seed))


@functools.lru_cache(maxsize=8)
def _initialiser(config: ModelConfig, mesh: Mesh) -> Callable[[jax.Array], Variables]:
    """Compiled once for all seeds: XLA keeps some of every compilation."""
    shardings = jax.tree.map(lambda leaf: leaf.sharding, abstract_variables(config, mesh))
    return jax.jit(
        lambda key: sharding.unbox(_boxed_variables(config, key)),
        out_shardings=shardings,
        compiler_options=run_once(mesh.devices.flat[0].platform),
    )


def with_table(config: ModelConfig, variables: Variables, mesh: Mesh) -> Variables:
    """`variables` with the learned table of the model's positions, zeros where there was none."""
    if config.table is None or TABLE in variables['params']:
        return variables
    target = abstract_variables(config, mesh)['params'][TABLE]
    zeros = sharding.put(np.zeros(target.shape, target.dtype), target.sharding)
    return {**variables, 'params': {**variables['params'], TABLE: zeros}}


def completed(config: ModelConfig, mesh: Mesh, variables: Variables, seed: int) -> Variables:
    """`variables` with fresh arrays, of that seed, where the model has some that they lack."""
    have, wanted = (
        traverse_util.flatten_dict(tree) for tree in (variables, abstract_variables(config, mesh))
    )
    if have.keys() >= wanted.keys():
        return variables
    fresh = traverse_util.flatten_dict(fresh_variables(config, mesh, seed))
    return traverse_util.unflatten_dict({**fresh, **have})


def lam_of(variables: Variables) -> jax.Array:
    """The lambda coefficients, float32 [L, N], or [L, N, C] of a law with C > 1 numbers."""
    return variables['lam']['head']


def with_lam(variables: Variables, lam_LN: jax.Array) -> Variables:
    """`variables` with other lambda coefficients."""
    return {**variables, 'lam': {'head': lam_LN}}


def with_lam_from(variables: Variables, bound: float) -> Variables:
    """`variables` of which no lambda coefficient is below `bound`."""
    return with_lam(variables, jnp.maximum(lam_of(variables), bound))


def with_uniform_lam(
    variables: Variables, coefficient: lam.Coefficient, numbers: int = 1
) -> Variables:
    """`variables` with the same lambda in every head, placed as the old one. numbers: coefficients
    of a head that the law has (the old ones may be of another law)."""
    lam_LN = lam_of(variables)
    layers, heads = lam_LN.shape[:2]
    uniform_LN = np.asarray(lam.uniform(coefficient, layers, heads, numbers))
    return with_lam(variables, sharding.put(uniform_LN, lam_LN.sharding))


def with_lam_beside(
    variables: Variables, trained: lam.Law, searched: lam.Law, coefficient: lam.Coefficient
) -> Variables:
    """`variables` with the coefficients of `lam.Product(trained, searched)`: the old ones, of
    `trained` or of a product with it, and for `searched` the same in every head."""
    old_LN = lam_of(variables)
    layers, heads = old_LN.shape[:2]
    old_LNC = sharding.fetch(old_LN).reshape(layers, heads, -1)
    uniform_LN = np.asarray(lam.uniform(coefficient, layers, heads, searched.numbers))
    new_LNC = uniform_LN.reshape(layers, heads, -1)
    both_LNC = np.concatenate([old_LNC[..., : trained.numbers], new_LNC], axis=-1)
    return with_lam(variables, sharding.put(both_LNC, old_LN.sharding))


def last_multipliers(config: ModelConfig, variables: Variables, length: int) -> np.ndarray:
    """Multipliers of the softmax scale that the last query of a sequence of `length` tokens has,
    [L, N] float32, whole on every process. All processes call it."""
    last = _multipliers(config, variables, length, first=length - 1)
    return last[:, 0] if config.lam.follows_position else last


def lam_is_neutral(config: ModelConfig, variables: Variables, length: int | None = None) -> bool:
    """Whether lambda changes nothing in sequences of `length` tokens. All processes call it.

    length: None for any length, of laws that follow neither length nor position; ValueError for
    the others.
    """
    if length is None:
        config.lam.check_foldable(length)
        length = 1
    return lam.is_neutral(_multipliers(config, variables, length, first=0))


def _multipliers(config: ModelConfig, variables: Variables, length: int, first: int) -> np.ndarray:
    """As `ModelConfig.multipliers`, at the positions from `first` to the last."""
    coefficients_LN = jnp.asarray(sharding.fetch(lam_of(variables)))
    positions_T = jnp.arange(first, length, dtype=jnp.int32)
    return np.asarray(config.multipliers(coefficients_LN, length, positions_T))


def _boxed_variables(config: ModelConfig, key: jax.Array) -> Variables:
    variables = Transformer(config).init(key, jnp.zeros((1, 2), jnp.int32))
    return {name: variables[name] for name in COLLECTIONS}
