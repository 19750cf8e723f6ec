"""Parts of a block: norms, dropout, the MLP."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.attention.dropout import dropped
from nope.model.config import ModelConfig
from nope.model.dropout import Place, place_keys
from nope.model.init import initializer
from nope.model.parameters import bias, parameter, project
from nope.runtime.mesh_axes import axes_of, parts_of


def elementwise(config: ModelConfig, function: Callable, *settings: Any) -> Callable:
    """`function` of `settings` and arrays. With remat 'elementwise' only the arrays it was given
    are kept for its backward pass, which computes it again."""
    applied = functools.partial(function, *settings)
    return jax.checkpoint(applied) if config.remat == 'elementwise' else applied


def drop(
    config: ModelConfig, x_BTD: jax.Array, keys_B: jax.Array | None, place: Place
) -> jax.Array:
    """x with the model's dropout at a place other than the attention weights; x where there are no
    keys. keys_B: typed keys of the rows, in a layer those of the layer (`nope.model.dropout`)."""
    if keys_B is None or config.dropout == 0:
        return x_BTD
    return elementwise(config, dropped, config.dropout)(x_BTD, place_keys(keys_B, place))


def split_over_mesh(x_BTD: jax.Array) -> jax.Array:
    """Activations with their rows and tokens over the devices of the current mesh, if any; an axis
    that these do not divide evenly stays whole. XLA would pad it, and then its gradient of an
    embedding that is split over 'tensor' counts the padding as tokens."""
    B, T, _ = x_BTD.shape
    axes = [
        None if size % parts_of(axes_of(name)) else name
        for name, size in (('batch', B), ('sequence', T))
    ]
    return nn.with_logical_constraint(x_BTD, (*axes, 'activation'))


class Norm(nn.Module):
    """y = x * rsqrt(mean(x^2) + eps) * w over the last axes (RMSNorm), statistics in float32.

    centred: the mean is subtracted first (LayerNorm). biased: and a bias added. axes: logical names
    of the axes that it is taken over. epsilon: None for the model's. Weights are stored less 1
    where the model says so.
    """

    config: ModelConfig
    centred: bool
    biased: bool
    axes: tuple[str, ...] = ('norm',)
    epsilon: float | None = None

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        shape = x.shape[-len(self.axes) :]
        offset = self.config.norm_offset
        fresh = nn.initializers.zeros if offset else nn.initializers.ones
        weight = parameter(self, 'scale', fresh, shape, self.axes)
        weight = weight + 1.0 if offset else weight
        epsilon = self.config.norm_epsilon if self.epsilon is None else self.epsilon
        normed = elementwise(self.config, _normalise, self.centred, epsilon)(x, weight)
        if self.biased:
            normed += bias(self, 'bias', shape, self.axes, 'float32')
        return normed.astype(self.config.dtype)


def _normalise(centred: bool, epsilon: float, x: jax.Array, weight: jax.Array) -> jax.Array:
    if x.ndim - weight.ndim > 1 and len(x) == 1:
        # A leading axis of one makes the sums of the gradient ten times slower on a CPU.
        return _normalise(centred, epsilon, x[0], weight)[None]
    x32 = x.astype(jnp.float32)
    axes = tuple(range(-weight.ndim, 0))
    if centred:
        x32 -= jnp.mean(x32, axis=axes, keepdims=True)
    mean_square = jnp.mean(jnp.square(x32), axis=axes, keepdims=True)
    return x32 * jax.lax.rsqrt(mean_square + epsilon) * weight


def unit_norm(config: ModelConfig, x: jax.Array) -> jax.Array:
    """x * rsqrt(mean(x^2) + eps) over the last axis: RMSNorm without weights."""
    ones = jnp.ones(x.shape[-1:], jnp.float32)
    normed = elementwise(config, _normalise, False, config.norm_epsilon)(x, ones)
    return normed.astype(config.dtype)


def norm(
    config: ModelConfig, name: str, epsilon: float | None = None
) -> Callable[[jax.Array], jax.Array]:
    """The norm that the model uses everywhere: a module of that name, or the identity. epsilon:
    None for the model's."""
    if config.norm == 'none':
        return lambda x: x
    centred = config.norm == 'layer'
    return Norm(config, centred, biased=config.norm_bias, epsilon=epsilon, name=name)


class MLP(nn.Module):
    """down(act(gate(x)) * up(x)), or down(act(up(x)))."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BTD: jax.Array, keys_B: jax.Array | None = None) -> jax.Array:
        """keys_B: typed keys of the layer's dropout, None for none."""
        c = self.config
        if c.mlp == 'gated':
            gate_BTF = self._inner(x_BTD, 'gate')
            inner_BTF = elementwise(c, _gate, c.activation)(gate_BTF, self._inner(x_BTD, 'up'))
        else:
            inner_BTF = activate(c.activation, self._inner(x_BTD, 'up'))
        inner_BTF = drop(c, inner_BTF, keys_B, Place.INNER)
        shape, axes = (c.mlp_width, c.width), ('mlp', 'embed')
        down_FD = parameter(self, 'down', initializer(c, 'mlp_out'), shape, axes, c.dtype)
        out_BTD = project(inner_BTF, down_FD)
        if c.mlp_bias:
            out_BTD += bias(self, 'down_bias', (c.width,), ('norm',), c.dtype)
        return out_BTD

    def _inner(self, x_BTD: jax.Array, name: str) -> jax.Array:
        c = self.config
        shape, axes = (c.width, c.mlp_width), ('embed', 'mlp')
        weight_DF = parameter(self, name, initializer(c, 'mlp_in'), shape, axes, c.dtype)
        inner_BTF = project(x_BTD, weight_DF)
        if c.mlp_bias:
            inner_BTF += bias(self, f'{name}_bias', (c.mlp_width,), ('mlp',), c.dtype)
        return inner_BTF


def _gate(activation: str, gate: jax.Array, up: jax.Array) -> jax.Array:
    return activate(activation, gate) * up


def activate(name: str, x: jax.Array) -> jax.Array:
    if name == 'gelu':
        return nn.gelu(x, approximate=False)
    if name == 'gelu_tanh':
        return nn.gelu(x, approximate=True)
    if name == 'relu2':
        return jnp.square(nn.relu(x))
    return {'silu': nn.silu, 'relu': nn.relu}[name](x)
