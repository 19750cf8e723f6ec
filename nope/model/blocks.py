"""Layers of a decoder, one after the other: stacked and scanned, each with arrays of its own, or
with a cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.model.attention import SelfAttention
from nope.model.cache import Cache, LayerCache
from nope.model.config import ModelConfig
from nope.model.dropout import Place
from nope.model.init import initializer
from nope.model.layers import MLP, drop, norm, split_over_mesh
from nope.model.mixers import Attention, Mamba2, Parts
from nope.model.parameters import parameter
from nope.model.sequence import Sequence
from nope.model.shape import AskedStats, LayerStats
from nope.model.token_inputs import TokenInput


class Mixing(nn.Module):
    """A layer's mixer other than attention, with its parameters."""

    config: ModelConfig
    mixer: Mamba2

    @nn.compact
    def __call__(self, x_BTD: jax.Array, sequence: Sequence, state: Any) -> tuple[jax.Array, Any]:
        c = self.config

        def made(name: str, init: Any, shape: Any, axes: Any, dtype: str = c.dtype) -> jax.Array:
            drawn = initializer(c, init) if isinstance(init, str) else init
            return parameter(self, name, drawn, shape, axes, dtype)

        parts = Parts(made, c.norm_epsilon)
        return self.mixer.mix(parts, x_BTD, sequence.mask.q_segments_BT, state)


class Block(nn.Module):
    """A layer, shaped for `nn.scan` over layers. By the model's `block`:

    pre: x + Attention(norm(x)), then x + MLP(norm(x)).
    parallel: x + Attention(norm(x)) + MLP(norm(x)) of the same norm(x).
    post: x + norm(Attention(x)), then x + norm(MLP(x)).
    both: x + norm(Attention(norm(x))), then x + norm(MLP(norm(x))).

    Another mixer stands in attention's place, or none; some layers have no MLP. The model's
    `residual_multiplier` scales what is added. With keys_B, dropout acts behind its norm. keeps: as
    for `SelfAttention`.
    """

    config: ModelConfig
    asked: AskedStats
    keeps: bool = False

    @nn.compact
    def __call__(
        self,
        x_BTD: jax.Array,
        multipliers_N: jax.Array | None,
        kind: int | jax.Array,
        sequence: Sequence,
        keys_B: jax.Array | None = None,
        cached: Any = None,
        source: LayerCache | None = None,
        input_BTP: jax.Array | None = None,
    ) -> tuple[jax.Array, tuple[LayerStats, Any]]:
        """multipliers_N: None where the layer has no attention. source: as `SelfAttention` takes
        it. input_BTP: the layer's u of `nope.model.token_inputs`. Returns x, the statistics of its
        attention, and what it knows of the tokens."""
        c = self.config
        # Where layers are scanned, they differ neither in their mixer nor in having an MLP.
        own = c.kinds[kind] if isinstance(kind, int) else c.kinds[0]
        stats, read_BTD = LayerStats(None), x_BTD
        mlp = MLP(c, name='mlp') if own.mlp else None
        if own.mixer is not None:
            name = own.mixer.name
            read_BTD = self._before(x_BTD, name)
            if not isinstance(own.mixer, Attention):
                mixed_BTD, cached = Mixing(c, own.mixer, name=name)(read_BTD, sequence, cached)
            else:
                assert multipliers_N is not None
                attention = SelfAttention(c, self.asked, self.keeps, name=name)
                mixed_BTD, stats, cached = attention(
                    read_BTD, multipliers_N, kind, sequence, keys_B, cached, source
                )
            x_BTD = x_BTD + drop(c, self._behind(mixed_BTD, name), keys_B, Place.ATTENTION)
        if mlp is not None:
            if c.block != 'parallel' or own.mixer is None:
                read_BTD = self._before(x_BTD, 'mlp')
            made_BTD = self._behind(mlp(read_BTD, keys_B), 'mlp')
            x_BTD = x_BTD + drop(c, made_BTD, keys_B, Place.MLP)
        if input_BTP is not None:
            x_BTD = x_BTD + TokenInput(c, name='token_input')(x_BTD, input_BTP)
        if c.layer_scale:
            scale_1 = parameter(self, 'layer_scale', nn.initializers.ones, (1,), ('norm',), c.dtype)
            x_BTD = x_BTD * scale_1
        return split_over_mesh(x_BTD), (stats, cached)

    def _before(self, x_BTD: jax.Array, part: str) -> jax.Array:
        """Input of mixer or MLP: the residual stream, normed unless `block` is 'post'."""
        return x_BTD if self.config.block == 'post' else norm(self.config, f'{part}_norm')(x_BTD)

    def _behind(self, x_BTD: jax.Array, part: str) -> jax.Array:
        """Residual update of mixer or MLP: normed where `block` says so, and multiplied."""
        names = {'post': f'{part}_norm', 'both': f'{part}_output_norm'}
        name = names.get(self.config.block)
        if name is not None:
            x_BTD = norm(self.config, name, self.config.output_norm_epsilon)(x_BTD)
        factor = self.config.residual_multiplier
        # In float32, as JAX rounds a Python number to the dtype of x before the product.
        return x_BTD if factor == 1 else (x_BTD.astype(jnp.float32) * factor).astype(x_BTD.dtype)


def cached_layers(
    config: ModelConfig,
    entropy: bool,
    layers: Mapping[str, Any],
    x_BTD: jax.Array,
    multipliers_LBN: jax.Array,
    sequence: Sequence,
    cache: Cache,
    inputs_LBTP: jax.Array | None,
) -> tuple[jax.Array, LayerStats, Cache]:
    """`Block` for one layer after the other: a loop over layers would copy weights and caches."""
    entropies: list[jax.Array] = []
    caches: list[Any] = []
    multipliers = _by_layer(config, multipliers_LBN)
    for i, kind in enumerate(config.kind_indices.tolist()):
        block = Block(config.of_layer(i), AskedStats(entropy), parent=None)  # type: ignore[call-arg]
        source = config.source_of(i)
        out: Any = block.apply(
            {'params': layers[str(i)]},
            *(x_BTD, multipliers.get(i), kind, sequence, None, cache.layers[i]),
            source=None if source == i else caches[source],
            input_BTP=None if inputs_LBTP is None else inputs_LBTP[i],
        )
        x_BTD, (stats, cached) = out
        if i in multipliers:
            entropies.append(stats.entropy)
        caches.append(cached)
    filled = cache.filled + x_BTD.shape[1]
    entropy_LBNT = jnp.stack(entropies) if entropy else None
    return x_BTD, LayerStats(entropy_LBNT), cache._replace(layers=tuple(caches), filled=filled)


def _by_layer(config: ModelConfig, rows_LN: jax.Array) -> dict[int, jax.Array]:
    """Layers that have attention -> their rows."""
    return {layer: rows_LN[row] for row, layer in enumerate(config.attending)}


class LayersApart(nn.Module):
    """`Block` for one layer after the other, each with arrays of its own: layers of several shapes,
    that attend to keys of earlier ones, or that have no attention."""

    config: ModelConfig
    asked: AskedStats

    @nn.compact
    def __call__(
        self,
        x_BTD: jax.Array,
        multipliers_LN: jax.Array,
        sequence: Sequence,
        keys_LB: jax.Array | None,
        inputs_LBTP: jax.Array | None,
    ) -> tuple[jax.Array, LayerStats]:
        c = self.config
        sources = [c.source_of(i) for i in range(c.layers)]
        kept: dict[int, LayerCache] = {}
        every: list[LayerStats] = []
        multipliers = _by_layer(c, multipliers_LN)
        block = _rematerialised(c, prevent_cse=True)
        for i, kind in enumerate(c.kind_indices.tolist()):
            keeps = i in sources[i + 1 :]
            x_BTD, (stats, cached) = block(c.of_layer(i), self.asked, keeps, name=str(i))(
                *(x_BTD, multipliers.get(i), kind, sequence),
                None if keys_LB is None else keys_LB[i],
                None,
                None if sources[i] == i else kept[sources[i]],
                None if inputs_LBTP is None else inputs_LBTP[i],
            )
            if i in multipliers:
                every.append(stats)
            if keeps:
                kept[i] = cached
        return x_BTD, jax.tree.map(lambda *of_layers: jnp.stack(of_layers), *every)


def _rematerialised(config: ModelConfig, *, prevent_cse: bool) -> type[nn.Module]:
    """`Block`, rematerialised as the config says."""
    if config.remat in ('none', 'elementwise', 'fit'):  # that is the parts' own
        return Block
    kind = 3  # of `__call__`, the module itself counted: an int where layers are apart
    static = (kind,) if config.apart else ()
    dots = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    kept = dots if config.remat == 'dots' else None
    return nn.remat(Block, prevent_cse=prevent_cse, policy=kept, static_argnums=static)


def scanned_layers(config: ModelConfig, asked: AskedStats, drops: bool) -> nn.Module:
    """`Block` scanned over layers and rematerialised as the config says. drops: whether it takes
    keys of dropout."""
    scanned = nn.scan(
        # Within a loop XLA merges nothing; where layers are unrolled there is none.
        _rematerialised(config, prevent_cse=config.unroll in (None, config.layers)),
        variable_axes={'params': 0},
        split_rngs={'params': True},
        in_axes=(0, 0, nn.broadcast, 0) if drops else (0, 0, nn.broadcast),
        length=config.layers,
        unroll=config.layers if config.unroll is None else config.unroll,
        metadata_params={nn.PARTITION_NAME: 'layers'},
    )
    return scanned(config, asked, name='layers')
