"""Mamba-2 as a mixer (arXiv 2405.21060): projections, a short convolution, the scan, a gated norm.

    x, b, c = silu(conv(W_x u, W_b u, W_c u))      dt = clip(softplus(W_dt u + dt_bias))
    y = scan(x, dt, -exp(log_a), b, c) + skip x    out = W_o norm(y silu(W_z u))

of what a layer reads, u. Weight decay of `matrices` leaves log_a, dt_bias and skip, as that of the
authors does. The norm's mean square is taken over the heads of a group. Fresh values
are those of the authors' code: a uniform in 1 to 16, dt log-uniform in 0.001 to 0.1, skip 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.model.parameters import project
from nope.runtime.errors import FieldError
from nope.state_space import CHUNK, causal_convolution, chunked_scan


class Mamba2State(NamedTuple):
    """Earlier tokens of a layer: the state of its scan, float32, and the last S = W - 1 inputs of
    its convolutions."""

    scan_BNHE: jax.Array
    x_BSNH: jax.Array
    b_BSKE: jax.Array
    c_BSKE: jax.Array


@dataclasses.dataclass(frozen=True)
class Parts:
    """Parts of a model that a mixer takes.

    parameter: an array of the layer by its name, the role of its first values (`nope.model.init`)
        or an initializer, its shape and logical axes, and 'float32' where it is not read in the
        model's dtype. epsilon: of the norms.
    """

    parameter: Callable[..., jax.Array]
    epsilon: float


@dataclasses.dataclass(frozen=True)
class Mamba2:
    """heads, head_dim: N and H of the scan.
    state: E, the size of its state for each dimension of a head.
    groups: K, of heads that share b and c.
    taps: W, tokens that the convolution sees.
    convolution_bias: whether it has one. bias: whether the projections have one.
    least_step, most_step: bounds of dt; None for none above.
    """

    heads: int
    head_dim: int
    state: int
    groups: int = 1
    taps: int = 4
    convolution_bias: bool = True
    bias: bool = False
    least_step: float = 0.0
    most_step: float | None = None

    name: ClassVar[str] = 'mamba2'  # of its arrays under a layer

    def __post_init__(self) -> None:
        for field in ('heads', 'head_dim', 'state', 'groups', 'taps'):
            least = 2 if field == 'taps' else 1
            if not least <= getattr(self, field) <= 2**16:
                raise FieldError(field, getattr(self, field), f'accepted: {least} to 65,536')
        if self.heads % self.groups:
            raise FieldError('groups', self.groups, f'heads, {self.heads}, must be a multiple')
        if not 0 <= self.least_step < math.inf:
            raise FieldError('least_step', self.least_step, 'it must be finite, 0 or more')
        if self.most_step is not None and not self.least_step < self.most_step < math.inf:
            rule = f'it must be finite and above least_step, {self.least_step:g}, or None'
            raise FieldError('most_step', self.most_step, rule)

    def weights(self, width: int) -> int:
        """Weights in the matrix products of a layer of a model of this width."""
        inner = self.heads * self.head_dim
        return width * (3 * inner + 2 * self.groups * self.state + self.heads)

    def vectors(self, width: int) -> int:
        """All its other parameters there."""
        inner, shared = self.heads * self.head_dim, 2 * self.groups * self.state
        convolved = (inner + shared) * (self.taps + self.convolution_bias)
        biases = self.bias * (2 * inner + shared + self.heads + width)
        return convolved + 3 * self.heads + inner + biases

    def products(self) -> float:
        """Multiplications of a token that are not with weights."""
        inner = self.heads * self.head_dim
        return 2 * inner * self.state + CHUNK / 2 * (self.groups * self.state + inner)

    def empty(self, rows: int, dtype: str) -> Mamba2State:
        """Initial state of that many rows, as `mix` takes it."""
        shared = jnp.zeros((rows, self.taps - 1, self.groups, self.state), dtype)
        x_BSNH = jnp.zeros((rows, self.taps - 1, self.heads, self.head_dim), dtype)
        scan_BNHE = jnp.zeros((rows, self.heads, self.head_dim, self.state), jnp.float32)
        return Mamba2State(scan_BNHE, x_BSNH, shared, shared)

    def mix(
        self,
        parts: Parts,
        x_BTD: jax.Array,
        segments_BT: jax.Array | None,
        state: Mamba2State | None,
    ) -> tuple[jax.Array, Mamba2State]:
        """(the layer's output [B, T, D], the state with these tokens).

        segments_BT: int32 documents. state: of earlier tokens, which then are of the same document,
        and segment 0 is padding; None before the first.
        """
        B, T, D = x_BTD.shape
        real_BT = None
        if state is not None and segments_BT is not None:
            # Zeros leave state and convolution as they were before the first token.
            real_BT, segments_BT = (segments_BT != 0)[..., None, None], None
        before = state or self.empty(B, x_BTD.dtype.name)
        N, H, K, E = self.heads, self.head_dim, self.groups, self.state

        def projected(name: str, heads: int, size: int, axis: str) -> jax.Array:
            shape, axes = (D, heads, size), ('embed', axis, 'head_dim')
            weight_DNH = parts.parameter(name, 'mlp_in', shape, axes)
            out_BTNH = project(x_BTD, weight_DNH.reshape(D, -1)).reshape(B, T, heads, size)
            if self.bias:
                zeros = nn.initializers.zeros
                out_BTNH += parts.parameter(f'{name}_bias', zeros, shape[1:], axes[1:])
            return out_BTNH

        def convolved(name: str, heads: int, size: int, axis: str, before_BSNH: jax.Array):
            z_BTNH = projected(name, heads, size, axis)
            return self._convolved(parts, name, axis, z_BTNH, before_BSNH, segments_BT, real_BT)

        gate_BTNH = projected('gate', N, H, 'heads')
        x_BTNH, x_BSNH = convolved('x', N, H, 'heads', before.x_BSNH)
        b_BTKE, b_BSKE = convolved('b', K, E, 'kv_heads', before.b_BSKE)
        c_BTKE, c_BSKE = convolved('c', K, E, 'kv_heads', before.c_BSKE)

        def of_head(name: str, init: Callable[..., jax.Array]) -> jax.Array:
            return parts.parameter(name, init, (N,), ('heads',), 'float32')

        raw_BTN = projected('step', N, 1, 'heads')[..., 0].astype(jnp.float32)
        dt_BTN = nn.softplus(raw_BTN + of_head('dt_bias', _dt_bias))
        dt_BTN = jnp.clip(dt_BTN, self.least_step, self.most_step)
        a_N = -jnp.exp(of_head('log_a', _log_a))
        y_BTNH, scan_BNHE = chunked_scan(
            *(x_BTNH, dt_BTN, a_N, b_BTKE, c_BTKE),
            segments_BT=segments_BT,
            state_BNHE=None if state is None else state.scan_BNHE,
        )
        skip_N1 = of_head('skip', nn.initializers.ones)[:, None]
        y_BTNH = y_BTNH + (skip_N1 * x_BTNH).astype(y_BTNH.dtype)

        scale_NH = parts.parameter(
            'scale', nn.initializers.ones, (N, H), ('heads', 'head_dim'), 'float32'
        )
        normed_BTNH = _gated_norm(y_BTNH, gate_BTNH, scale_NH, K, parts.epsilon)
        if real_BT is not None:  # without an epsilon zeros would be NaN
            normed_BTNH = jnp.where(real_BT, normed_BTNH, 0)
        axes = ('heads', 'head_dim', 'embed')
        out_NHD = parts.parameter('output', 'output', (N, H, D), axes)
        out_BTD = project(normed_BTNH.reshape(B, T, -1), out_NHD.reshape(-1, D))
        if self.bias:
            out_BTD += parts.parameter('output_bias', nn.initializers.zeros, (D,), ('norm',))
        return out_BTD, Mamba2State(scan_BNHE, x_BSNH, b_BSKE, c_BSKE)

    def _convolved(
        self,
        parts: Parts,
        name: str,
        axis: str,
        z_BTNH: jax.Array,
        before_BSNH: jax.Array,
        segments_BT: jax.Array | None,
        real_BT: jax.Array | None,
    ) -> tuple[jax.Array, jax.Array]:
        """silu of the convolution, and its last S inputs. real_BT [B, T, 1, 1]: no padding."""
        if real_BT is not None:
            z_BTNH = jnp.where(real_BT, z_BTNH, 0)
        (B, T), shape = z_BTNH.shape[:2], (self.taps, *z_BTNH.shape[2:])
        axes = ('positions', axis, 'head_dim')
        weight_WNH = parts.parameter(f'{name}_taps', _taps, shape, axes)
        y_BTC = causal_convolution(
            z_BTNH.reshape(B, T, -1),
            weight_WNH.reshape(self.taps, -1),
            segments_BT=segments_BT,
            before_BSC=before_BSNH.reshape(B, self.taps - 1, -1),
        )
        y_BTNH = y_BTC.reshape(z_BTNH.shape)
        if self.convolution_bias:
            zeros = nn.initializers.zeros
            y_BTNH += parts.parameter(f'{name}_taps_bias', zeros, shape[1:], axes[1:])
        y_BTNH = nn.silu(y_BTNH)
        if real_BT is not None:
            y_BTNH = jnp.where(real_BT, y_BTNH, 0)
        return y_BTNH, jnp.concatenate([before_BSNH, z_BTNH], axis=1)[:, T:]

    def describe(self) -> str:
        """A few words for captions."""
        return f'Mamba-2, {self.heads} heads of {self.head_dim} with states of {self.state}'


def _gated_norm(
    y_BTNH: jax.Array, gate_BTNH: jax.Array, scale_NH: jax.Array, groups: int, epsilon: float
) -> jax.Array:
    """y silu(gate) over the root of its mean square in each group of heads, in the dtype of y."""
    gated_BTNH = y_BTNH.astype(jnp.float32) * nn.silu(gate_BTNH.astype(jnp.float32))
    grouped_BTKC = gated_BTNH.reshape(*y_BTNH.shape[:2], groups, -1)
    mean_square = jnp.mean(jnp.square(grouped_BTKC), axis=-1, keepdims=True)
    normed_BTKC = grouped_BTKC * jax.lax.rsqrt(mean_square + epsilon)
    return (normed_BTKC.reshape(y_BTNH.shape) * scale_NH).astype(y_BTNH.dtype)


def _taps(key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    bound = shape[0] ** -0.5
    return jax.random.uniform(key, shape, dtype, -bound, bound)


def _log_a(key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    return jnp.log(jax.random.uniform(key, shape, dtype, 1.0, 16.0))


def _dt_bias(key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    """Inverse softplus of steps that are log-uniform in 0.001 to 0.1."""
    dt = jnp.exp(jax.random.uniform(key, shape, dtype, math.log(1e-3), math.log(1e-1)))
    return dt + jnp.log(-jnp.expm1(-dt))
