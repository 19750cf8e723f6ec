"""Layers whose heads are of two kinds: local ones, and ones without position encoding."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import LayerKind, ModelConfig
from nope.model.lam import LogLength
from nope.positions import Alibi, ForgetGate, NoPE, Position, RoPE, Split, T5Bias
from nope.variables import Variables
from tests import tiny
from tests.model.context_test import mesh_of, on, on_one_device
from tests.model.programs import T, influence, run

N = tiny.MODEL.heads
TOKENS = tiny.tokens(2, T)
TABLE = T5Bias(buckets=8, max_distance=12)
# A split, and the kind of layer that its local heads are taken from.
SPLITS = {
    'ALiBi': (Split(Alibi()), LayerKind(Alibi())),
    'T5': (Split(TABLE), LayerKind(TABLE)),
    'rope': (Split(RoPE()), LayerKind(RoPE())),
    'RoPE, window': (Split(RoPE(), window=4), LayerKind(RoPE(), window=4)),
    'window': (Split(NoPE(), window=4), LayerKind(NoPE(), window=4)),
}


def entropies(position: Position, window: int | None = None, table: Any = None) -> np.ndarray:
    """[B, N, T] of a model of one layer, all with the same weights."""
    config = tiny.model(layers=1, position=position, window=window)
    variables: Variables = tiny.variables(tiny.model(layers=1))
    if table is not None:
        variables = {**variables, 'params': {**variables['params'], 'position': table}}
    return np.asarray(run(config, variables, TOKENS).entropy[0])


@pytest.mark.parametrize(('split', 'local'), SPLITS.values(), ids=SPLITS)
def test_each_half_of_the_heads_is_what_it_would_be_alone(split: Split, local: LayerKind) -> None:
    """The first half as in a layer of the local kind, the others as in a layer of NoPE."""
    half, table, whole = N // 2, None, None
    if isinstance(local.position, T5Bias):
        table = np.random.default_rng(0).normal(size=(TABLE.buckets, half)).astype(np.float32)
        whole = np.concatenate([table, table], axis=1)
    kind = local.position
    if isinstance(kind, Alibi):  # slopes of two heads are not those of four
        split, kind = Split(Alibi(4.0)), Alibi(8.0)
    found = entropies(split, table=table)
    close = {'rtol': 1e-5, 'atol': 1e-6}
    np.testing.assert_allclose(
        found[:, :half], entropies(kind, local.window, whole)[:, :half], **close
    )
    np.testing.assert_allclose(found[:, half:], entropies(NoPE())[:, half:], **close)


def test_only_local_heads_are_bound_to_the_window() -> None:
    """A token beyond the window still reaches the output, through the others."""
    change_ST, _ = influence(tiny.model(layers=1, position=Split(NoPE(), window=4)))
    assert np.all(change_ST[np.triu_indices(T)] > 1e-4)


def test_a_window_of_the_layer_bounds_both_kinds() -> None:
    kinds = [LayerKind(Split(NoPE(), window=w), window=4) for w in (4, 9)]
    wider, plain = (
        run(tiny.model(layers=1, pattern=(kind,)), tiny.variables(tiny.model(layers=1)), TOKENS)
        for kind in (kinds[1], LayerKind(window=4))
    )
    tiny.assert_close(wider, plain, rtol=1e-5, atol=1e-6)


def test_lambda_may_act_on_the_heads_without_position_alone() -> None:
    config = tiny.model(
        pattern=(LayerKind(Split(Alibi())), LayerKind(RoPE())),
        lam_layers='nope',
        lam=LogLength(train_length=4),
    )
    expected = np.zeros((2, N), bool)
    expected[0, N // 2 :] = True
    np.testing.assert_array_equal(config.heads_without_position, expected)
    assert config.without_position == (False, False)
    found = np.asarray(config.multipliers(jnp.full((2, N), 0.5), 16))
    np.testing.assert_allclose(found, np.where(expected, 1 + 0.5 * np.log(4), 1), rtol=1e-6)


@pytest.mark.parametrize(
    ('share', 'message'),
    [
        (0.3, r'share is 0\.3; it must leave whole heads of both kinds among heads, 4'),
        (0.1, r'share is 0\.1; it must leave whole heads of both kinds'),
        (0.25, r'share is 0\.25; 1 of 4 query heads, of which 2 share a key-value head; it mu'),
    ],
)
def test_a_share_leaves_whole_heads_of_both_kinds(share: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.model(position=Split(RoPE(), share))


def test_heads_that_share_keys_may_differ_in_their_bias() -> None:
    assert tiny.model(position=Split(Alibi(), 0.25)).heads_without_position[0].tolist() == [
        *(False, True, True, True)
    ]


@pytest.mark.parametrize(
    'position', [Split(RoPE(), window=9), Split(Alibi()), Split(ForgetGate())], ids=str
)
@pytest.mark.parametrize('shape', [(2, 1, 4, 1), (1, 1, 2, 4)], ids=str)
def test_a_mesh_that_divides_heads_and_sequence_changes_nothing(
    shape: tuple[int, ...], position: Position
) -> None:
    config: ModelConfig = tiny.model(layers=1, attention=None, position=position)
    _, found = on(mesh_of(*shape), config, 32)
    tiny.assert_close(found, on_one_device(config, 32), rtol=1e-4, atol=1e-5)


def test_descriptions_tell_splits_apart() -> None:
    """Captions and folder names are made from them."""
    splits = [Split(Alibi()), Split(Alibi(), 0.25), Split(RoPE()), Split(NoPE(), window=4)]
    assert [split.describe() for split in splits] == [
        'split ALiBi, 0.5 of heads',
        'split ALiBi, 0.25 of heads',
        'split RoPE, 0.5 of heads',
        'split local, 0.5 of heads, window 4',
    ]
