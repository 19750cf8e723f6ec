"""The models, windows and meshes that the tests share: small enough to compile in seconds."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.model import ModelConfig
from nope.model.lam import initial
from nope.positions import T5Bias
from nope.variables import Variables, abstract_variables, with_lam

# The reference attention compiles fastest and is what the other implementations are held to.
MODEL = ModelConfig(
    layers=2,
    width=32,
    heads=4,
    kv_heads=2,
    mlp_width=48,
    vocab_size=64,
    head_dim=8,
    attention='reference',
)

TINYLLAMA = ModelConfig(
    layers=22, width=2048, heads=32, kv_heads=4, mlp_width=5632, vocab_size=32_000, head_dim=64
)

# Every part that a block may have and MODEL has not.
EVERY_OPTION = dataclasses.replace(
    MODEL,
    position=T5Bias(buckets=8, max_distance=12),
    norm='layer',
    norm_bias=True,
    embedding_norm=True,
    qk_norm=True,
    softmax_scale=0.5,
    qkv_bias=True,
    output_bias=True,
    mlp_bias=True,
    activation='gelu',
    tied_head=True,
    logit_multiplier=0.25,
)


def model(**changes: Any) -> ModelConfig:
    """MODEL with other fields."""
    return dataclasses.replace(MODEL, **changes)


def t5_decoder(**changes: Any) -> ModelConfig:
    """The decoder of arXiv 2305.19466 (T5 base without its encoder), with other fields."""
    base = ModelConfig(
        layers=12,
        width=768,
        heads=12,
        kv_heads=12,
        mlp_width=3072,
        vocab_size=32_100,
        head_dim=64,
        position=T5Bias(),
        norm_epsilon=1e-6,
        softmax_scale=1.0,
        mlp='plain',
        activation='relu',
        tied_head=True,
        logit_multiplier=768**-0.5,
        init='t5',
    )
    return dataclasses.replace(base, **changes)


@functools.cache
def mesh() -> Mesh:
    """One device."""
    return sharding.make_mesh(sharding.MeshConfig(), jax.devices()[:1])


@functools.cache
def variables(config: ModelConfig = MODEL) -> Variables:
    """Random parameters and neutral lambda on one device, drawn on the host: compiles nothing.

    Matrices deviate by 0.12 from 0, the norms' weights and layers' factors from 1. Shared: never
    give them to a step that donates.
    """
    draw = np.random.default_rng(0)

    def leaf(path: tuple, target: jax.ShapeDtypeStruct) -> jax.Array:
        noise = 0.12 * draw.normal(size=target.shape)
        drawn = noise + 1 if path[-1].key in ('scale', 'layer_scale') else noise
        return jax.device_put(drawn.astype(target.dtype), target.sharding)

    abstract = abstract_variables(config, mesh())
    params = jax.tree_util.tree_map_with_path(leaf, abstract['params'])
    lam_LN = initial(config.lam, config.attention_layers, config.heads)
    return {
        'params': params,
        'lam': {'head': jax.device_put(lam_LN, abstract['lam']['head'].sharding)},
    }


def varied_lam(config: ModelConfig = MODEL, seed: int = 0) -> Variables:
    """`variables` with a different coefficient in [0.5, 2] for every head."""
    lam_LN = np.random.default_rng(seed).uniform(0.5, 2.0, (config.attention_layers, config.heads))
    return with_lam(variables(config), jax.numpy.asarray(lam_LN, jax.numpy.float32))


def spread(variables: Variables, config: ModelConfig, mesh: Mesh) -> Variables:
    """Variables of a model, sharded over a mesh of several devices."""
    return jax.tree.map(
        lambda leaf, target: jax.device_put(np.asarray(leaf), target.sharding),
        variables,
        abstract_variables(config, mesh),
    )


def tokens(
    batch: int, length: int, seed: int = 0, vocab_size: int = MODEL.vocab_size
) -> np.ndarray:
    """Random tokens [batch, length] int32."""
    draw = np.random.default_rng(seed).integers(vocab_size, size=(batch, length))
    return draw.astype(np.int32)


def counting(batch: int, length: int, seed: int = 0) -> np.ndarray:
    """Sequences that count up by one from a random start, [batch, length] int32: easy to learn."""
    start = np.random.default_rng(seed).integers(MODEL.vocab_size, size=(batch, 1))
    return ((start + np.arange(length)) % MODEL.vocab_size).astype(np.int32)


def assert_same(actual: Any, expected: Any) -> None:
    """Equal trees, bit for bit."""
    _assert_structure(actual, expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


def assert_close(actual: Any, expected: Any, *, rtol: float, atol: float = 0.0) -> None:
    """Trees equal up to rounding."""
    _assert_structure(actual, expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)


def _assert_structure(actual: Any, expected: Any) -> None:
    structure: Any = jax.tree.structure(actual)
    assert structure == jax.tree.structure(expected)
