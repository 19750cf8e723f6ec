"""What a model computes with a cache is what it computes without one."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import LayerKind, ModelConfig, ModelOutput, apply
from nope.model.cache import Cache, empty
from nope.model.decoding import unstack
from nope.model.lam import GivenLaw, LogFloor, LogLength
from nope.model.mixers import Mamba2
from nope.positions import DynamicNTK, ForgetGate, NoPE, Position, RoPE, Split
from tests import tiny
from tests.model.decoding.programs import in_pieces, piece, whole
from tests.model.pattern_test import THREE
from tests.model.positions_test import ENCODINGS

T = 12
TOKENS = tiny.tokens(2, T)
# Of both rows: slots before the first token, and the length that lambda and encodings follow.
PADDING, LENGTH = np.array([0, 4], np.int32), np.array([20, 10], np.float32)
MIXED = tiny.model(layers=3, pattern=THREE, lam=LogLength(train_length=4), attention=None)


def of_kinds(*positions: Position) -> ModelConfig:
    """A layer of each, without windows; lambda follows the length too."""
    pattern = tuple(LayerKind(position) for position in positions)
    return tiny.model(layers=len(pattern), pattern=pattern, lam=LogLength(train_length=4))


# With those of `MIXED`, every encoding: of several kinds in one model, fewer programs.
MODELS = {
    'RoPE, none, a given law': dataclasses.replace(
        of_kinds(ENCODINGS['rope'], NoPE()), law=GivenLaw(LogFloor(3), 0.3, first=0)
    ),
    'following the length': of_kinds(ENCODINGS['LongRoPE'], RoPE(scaling=DynamicNTK(2.0, 8))),
    'split': of_kinds(*(ENCODINGS[n] for n in ('half T5', 'half RoPE, window', 'none'))),
    'forget': tiny.model(pattern=(LayerKind(ForgetGate()), LayerKind(NoPE()))),
    'chunks': tiny.model(pattern=(LayerKind(RoPE(), chunk=5), LayerKind(NoPE()))),
    'random positions': tiny.model(
        pattern=(LayerKind(RoPE()), LayerKind(NoPE())), position_range=64
    ),
    'half forget, window': tiny.model(layers=1, position=Split(ForgetGate(), window=5)),
    'adaptive temperature': tiny.model(
        pattern=(LayerKind(RoPE()), LayerKind(NoPE())), lam_layers='nope', temperature='adaptive'
    ),
    'temperature by entropy': tiny.model(layers=1, temperature='entropy'),
    'entmax': tiny.model(layers=1, attention=None, weights='entmax', window=7),
    'stick-breaking': tiny.model(layers=1, attention=None, weights='stick_breaking'),
    'parallel block': tiny.model(
        pattern=(LayerKind(RoPE(), window=5), LayerKind(NoPE())), norm='layer', block='parallel'
    ),
    'norms behind': tiny.model(
        pattern=(LayerKind(RoPE(), window=5), LayerKind(NoPE())),
        block='post',
        qk_norm=True,
        qk_norm_over='projection',
    ),
    'norms at both ends': tiny.model(
        layers=1,
        position=RoPE(),
        window=5,
        block='both',
        norm_offset=True,
        embedding_multiplier=32**0.5,
    ),
    'by distance': of_kinds(
        *(ENCODINGS[n] for n in ('kerple', 'sandwich', 'half scale-invariant', 'scale_invariant'))
    ),
    'sinusoidal': tiny.model(layers=1, position=ENCODINGS['sinusoidal']),
    'learned': tiny.model(layers=1, position=ENCODINGS['learned']),
    'other mixers': tiny.model(
        layers=4,
        pattern=(
            LayerKind(mixer=Mamba2(4, 8, 6, groups=2), mlp=False),
            LayerKind(mlp=False),
            LayerKind(mixer=None),
            LayerKind(mixer=Mamba2(2, 12, 5, taps=3)),
        ),
    ),
    'every option': dataclasses.replace(tiny.EVERY_OPTION, layers=1),
}
COVERED = {type(kind.position) for config in (MIXED, *MODELS.values()) for kind in config.kinds}
MODELS |= {
    name: of_kinds(position)
    for name, position in ENCODINGS.items()
    if type(position) not in COVERED
}

# Blocks that differ around attention alone; the cache is inside of it.
OTHER_BLOCKS = ('parallel block', 'norms behind', 'norms at both ends')


def alone(config: ModelConfig, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Hidden states [T, D] and entropies [L, N, T] of a row's tokens without padding, and zeros
    behind them, which no earlier token sees."""
    tokens = np.zeros((1, T), np.int32)
    tokens[0, : T - PADDING[row]] = TOKENS[row, PADDING[row] :]
    output = whole(config, tiny.varied_lam(config), tokens, LENGTH[row])
    return np.asarray(output.hidden[0]), np.asarray(output.entropy[:, 0])


def assert_alone(config: ModelConfig, hidden_BTD: jax.Array, entropy_LBNT: jax.Array) -> None:
    """Every row is what it is alone, up to rounding."""
    for row, padding in enumerate(PADDING):
        hidden_TD, entropy_LNT = alone(config, row)
        close = {'rtol': 1e-5, 'atol': 1e-5}
        np.testing.assert_allclose(hidden_BTD[row, padding:], hidden_TD[: T - padding], **close)
        expected = entropy_LNT[..., : T - padding]
        np.testing.assert_allclose(entropy_LBNT[:, row, :, padding:], expected, **close)


@pytest.mark.parametrize(
    'config',
    [
        pytest.param(config, marks=pytest.mark.slow if name in OTHER_BLOCKS else (), id=name)
        for name, config in MODELS.items()
    ],
)
def test_every_token_is_read_as_without_a_cache(config: ModelConfig) -> None:
    """In a batch where one row has fewer tokens and another length. Entropies too."""
    variables = tiny.varied_lam(config)
    assert_alone(config, *in_pieces(config, 6, variables, TOKENS, PADDING, LENGTH))


def read(size: int, tokens: np.ndarray, cache: Cache) -> tuple[ModelOutput, Cache]:
    """The mixed model's outputs, read in pieces of that size, and the cache."""
    weights = unstack(MIXED, tiny.varied_lam(MIXED))
    outputs = []
    for begin in range(0, tokens.shape[1], size):
        output = piece(MIXED, weights, tokens[:, begin : begin + size], cache)
        assert output.cache is not None
        outputs.append(output)
        cache = output.cache
    hidden = np.concatenate([output.hidden for output in outputs], axis=1)
    entropy = np.concatenate([output.entropy for output in outputs], axis=-1)
    return ModelOutput(hidden, outputs[0].head, entropy), cache


def unfilled() -> Cache:
    return empty(MIXED, LENGTH, T, PADDING)._replace(filled=jnp.int32(0))


@pytest.mark.parametrize('size', [1, 4])
def test_pieces_of_any_size_are_the_same(size: int) -> None:
    """Layers of three kinds with windows, and the attention that is used. The last piece fills the
    last slot."""
    output, cache = read(size, TOKENS, unfilled())
    assert cache.filled == cache.slots == T
    reference = dataclasses.replace(MIXED, attention='reference')
    assert_alone(reference, output.hidden, output.entropy)


def test_what_slots_hold_beyond_those_filled_plays_no_part() -> None:
    """Bit for bit: a cache that is cut back to fewer tokens is one that never had more."""
    _, longer = read(4, TOKENS[::-1], unfilled())
    found, _ = read(4, TOKENS[:, :8], longer._replace(filled=jnp.int32(0)))
    expected, _ = read(4, TOKENS[:, :8], unfilled())
    tiny.assert_same(found, expected)


def test_half_precision_is_as_exact_as_without_a_cache() -> None:
    single = MODELS['sinusoidal']
    config = dataclasses.replace(single, dtype='bfloat16')
    variables = tiny.varied_lam(config)
    arguments = variables, TOKENS[:1], LENGTH[0]
    exact, uncached = (whole(c, *arguments).hidden for c in (single, config))
    cached, _ = in_pieces(config, 6, variables, TOKENS[:1], None, LENGTH[:1])
    assert cached.dtype == jnp.bfloat16
    errors = [np.abs(np.asarray(h, np.float32) - exact).mean() for h in (cached, uncached)]
    assert 0 < errors[0] < 1.1 * errors[1] < 2**-6


def test_more_tokens_than_slots_are_refused() -> None:
    cache = empty(MIXED, LENGTH, T - 1)
    with pytest.raises(ValueError, match='tokens_BT has 12 tokens; the slots of the cache are 11'):
        piece.eval_shape(MIXED, unstack(MIXED, tiny.variables(MIXED)), TOKENS, cache)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('segments_BT', np.zeros_like(TOKENS[:, :5])),
        ('positions_BT', np.zeros_like(TOKENS[:, :5])),
        ('length', 12),
        ('span', 4),
        ('max_logit', True),
    ],
)
def test_what_a_cache_says_or_has_not_is_refused_beside_it(name: str, value: Any) -> None:
    weights = unstack(MIXED, tiny.variables(MIXED))
    cache = empty(MIXED, jnp.asarray(LENGTH), T)
    with pytest.raises(ValueError, match=f'{name} is given with a cache'):
        apply(MIXED, weights, jnp.asarray(TOKENS[:, :5]), cache=cache, **{name: value})


def test_more_tokens_than_slots_left_are_refused() -> None:
    """They would be written over earlier ones."""
    weights = unstack(MIXED, tiny.variables(MIXED))

    def read_after(filled: int) -> Cache | None:
        cache = empty(MIXED, jnp.asarray(LENGTH), T)._replace(filled=filled)
        return apply(MIXED, weights, jnp.asarray(TOKENS[:, :5]), cache=cache).cache

    message = 'tokens_BT has 5 tokens and cache.filled is 8; the slots of the cache are 12'
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda: read_after(8))
    jax.eval_shape(lambda: read_after(7))


@pytest.mark.parametrize(
    ('config', 'dtype'),
    [
        (MIXED, 'float32'),
        (tiny.EVERY_OPTION, 'bfloat16'),
        (MODELS['norms behind'], 'bfloat16'),
        (tiny.model(temperature='adaptive'), 'bfloat16'),
    ],
    ids=['mixed', 'every option', 'norms behind', 'temperature'],
)
def test_layers_come_apart(config: ModelConfig, dtype: str) -> None:
    """Matrices in the dtype of the computation; norms, lambda and the temperature, which are
    computed in float32, as they are; bit for bit."""
    config = dataclasses.replace(config, dtype=dtype)
    variables = jax.tree.map(np.asarray, tiny.varied_lam(config))
    expected = {**variables['params']}
    stacked = expected.pop('layers')
    for name in {'embedding', 'head'} & expected.keys():
        expected[name] = expected[name].astype(dtype)

    def apart(path: tuple, leaf: np.ndarray, layer: int) -> np.ndarray:
        exact = path[-1].key == 'scale' or 'temperature' in [key.key for key in path]
        matrix = leaf.ndim > 2 and not exact
        return leaf[layer].astype(dtype if matrix else leaf.dtype)

    expected['layers'] = {
        str(i): jax.tree_util.tree_map_with_path(functools.partial(apart, layer=i), stacked)
        for i in range(config.layers)
    }
    tiny.assert_same(unstack(config, variables), {**variables, 'params': expected})
