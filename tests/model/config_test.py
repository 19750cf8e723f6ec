from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import jax
import numpy as np
import pytest

from nope.model import LayerKind, ModelConfig, counts
from nope.model.checks import CHOICES
from nope.model.lam.info_scale import InfoScale
from nope.positions import (
    Alibi,
    ForgetGate,
    Learned,
    LongRoPE,
    NoPE,
    RoPE,
    Sinusoidal,
    Split,
    T5Bias,
)
from nope.variables import abstract_variables
from tests import tiny

# Every option by which a model gets more or fewer parameters, with what it needs.
OPTIONS: tuple[dict[str, Any], ...] = (
    {'tied_head': True},
    {'norm': 'layer'},
    {'norm': 'layer', 'norm_bias': True},
    {'block': 'parallel'},
    {'block': 'post'},
    {'block': 'both'},
    {'embedding_norm': True},
    {'qk_norm': True},
    {'qk_norm': True, 'qk_norm_over': 'projection'},
    {'sinks': True},
    {'output_gate': 'head'},
    {'output_gate': 'element'},
    {'temperature': 'adaptive'},
    {'qkv_bias': True},
    {'output_bias': True},
    {'mlp_bias': True},
    {'mlp': 'plain'},
    {'position': T5Bias(8, 12)},
    {'position': Learned(20)},
    {'pattern': (LayerKind(Split(ForgetGate())), LayerKind())},
    {'pattern': (LayerKind(T5Bias(8, 12), 4), LayerKind(Alibi()), LayerKind(T5Bias(8, 12)))},
    {'layers': 3},
    {'kv_heads': 4},
    {'head_dim': 6},
)


def combinations(count: int) -> list[dict[str, Any]]:
    """Random ones, each option in half of them."""
    draw = random.Random(0)
    found = []
    for _ in range(count):
        changes: dict[str, Any] = {'layers': 3}
        for option in draw.sample(OPTIONS, k=len(OPTIONS)):
            if draw.random() < 0.5 and not (
                {'pattern', 'position'} & option.keys() & changes.keys()
            ):
                changes |= option
        if 'pattern' in changes:
            changes.pop('position', None)
        found.append(changes)
    return found


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'head_dim': 6, 'position': RoPE()},
        {'norm': 'none'},
        *({'layers': 3} | o for o in OPTIONS),
    ],
)
def test_the_count_of_parameters_is_that_of_the_model(changes: dict[str, Any]) -> None:
    assert_counted(tiny.model(**changes))


@pytest.mark.parametrize('changes', combinations(8))
def test_options_are_counted_together(changes: dict[str, Any]) -> None:
    assert_counted(tiny.model(**changes))


def assert_counted(config: ModelConfig) -> None:
    params = abstract_variables(config, tiny.mesh())['params']
    assert counts.parameters(config) == sum(leaf.size for leaf in jax.tree.leaves(params))


def test_the_t5_decoder_has_its_published_size() -> None:
    """The authors count the model with the bias, whose table all layers share; the other
    encodings that they compare have no parameters."""
    assert counts.parameters(tiny.t5_decoder()) == 109_607_040
    assert_counted(tiny.t5_decoder())
    params = abstract_variables(tiny.t5_decoder(), tiny.mesh())['params']
    assert params['position'].shape == (32, 12)
    for position in (NoPE(), Sinusoidal(), Alibi(), RoPE(dims=16, interleaved=True)):
        assert counts.parameters(tiny.t5_decoder(position=position)) == 109_607_040 - 32 * 12


def test_a_training_step_costs_six_flops_per_weight_and_the_causal_half_of_attention() -> None:
    weights = 2 * (32 * 8 * (4 + 2 + 2 + 4) + 3 * 32 * 48) + 32 * 64
    attention = 2 * 3 * (2 * 4 * 8) * 100  # layers, passes, both products, half the keys
    assert counts.training_flops(tiny.MODEL, 100) == 6 * weights + attention
    tied = tiny.model(tied_head=True)
    assert counts.training_flops(tied, 100) == counts.training_flops(tiny.MODEL, 100)
    plain = tiny.model(mlp='plain')
    saved = 6 * 2 * 32 * 48
    assert counts.training_flops(plain, 100) == 6 * weights + attention - saved


@pytest.mark.parametrize(
    ('changes', 'seen'),
    [
        ({'window': 64}, (64,) * 4),
        ({'pattern': (LayerKind(NoPE(), chunk=64),)}, ('chunk',) * 4),
        ({'position': Split(NoPE(), window=64)}, (64, 64, None, None)),
        ({'position': Split(NoPE(), window=64), 'window': 256}, (64, 64, 256, 256)),
    ],
)
def test_attention_counts_the_keys_that_heads_see(changes, seen) -> None:
    T = 2048
    rows = np.arange(1, T + 1)
    means = {'chunk': (rows - 1) % 64 + 1} | {w: np.minimum(rows, w or T) for w in (64, 256, None)}
    model = tiny.model(**changes)
    dense = counts.training_flops(model, 0)
    per_key = 2 * 6 * 2 * 8  # layers, forward and backward of both products, numbers of a head
    expected = per_key * sum(means[head].mean() for head in seen)
    assert counts.training_flops(model, T) - dense == pytest.approx(expected, rel=0.02)


ROPE, NOPE, FORGET = LayerKind(RoPE()), LayerKind(), LayerKind(ForgetGate())
SPLIT = LayerKind(Split(ForgetGate()))
ENTMAX = {'attention': None, 'weights': 'entmax'}


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'layers': 0}, r'^layers is 0; it must be at least 1'),
        ({'head_dim': 0}, r'^head_dim is 0'),
        ({'layers': 10**9}, r'^layers is 1000000000; accepted: up to 10,000'),
        ({'vocab_size': 2**31}, r'^vocab_size is 2147483648; accepted: up to 2,147,483,647'),
        ({'vocab_size': -1}, r'^vocab_size is -1'),
        ({'lam': InfoScale(64, 16)}, r'^lam\.head_dim is 16; there are heads of 8 dimensions'),
        ({'kv_heads': 3}, r'kv_heads is 3; heads, 4, must be a multiple of it'),
        ({'head_dim': 7, 'position': RoPE()}, r'^head_dim is 7; .* even'),
        ({'position': RoPE(dims=16)}, r'position\.dims is 16; .* at most head_dim, 8'),
        (
            {'position': RoPE(scaling=LongRoPE((1.0,), (2.0,), 16))},
            r'position\.scaling\.short is \(1\.0,\); 8 rotated dimensions take 4 factors, not 1',
        ),
        ({'qk_norm_over': 'projection'}, r"^qk_norm_over is 'projection'; qk_norm is False"),
        ({'norm_bias': True}, r"^norm_bias is True; only the norm 'layer' has a bias"),
        *(
            ({f'{name}_multiplier': value}, rf'^{name}_multiplier is {value}; .* finite and above')
            for name in ('logit', 'embedding', 'residual')
            for value in (0.0, -1.0, math.inf, math.nan)
        ),
        ({'unroll': 3}, r'^unroll is 3; accepted: 1 to layers, 2, or None'),
        ({'window': 0}, r'^window is 0; accepted: 1 to 2\*\*30, or None for all keys'),
        ({'softmax_scale': 0.0}, r'^softmax_scale is 0.0; .* or None for 1 / sqrt\(H\)'),
        ({'dropout': 1.0}, r'^dropout is 1\.0; accepted: 0 or more, and below 1'),
        ({'dropout': -0.1}, r'^dropout is -0\.1'),
        ({'attention_dropout': float('nan')}, r'^attention_dropout is nan; accepted: 0 or more'),
        (
            {'attention_dropout': 0.1, 'attention': 'chunked'},
            r"^attention is 'chunked'; attention_dropout is 0\.1, .*accepted: None, 'reference'",
        ),
        ({'attention': ''}, r"^attention is ''; accepted: reference, .*, or None"),
        ({'attention': 'dense'}, r"^attention is 'dense'; accepted: reference, .*, or None"),
        *(
            ({name: 'nothing'}, rf"^{name} is 'nothing'; accepted: {', '.join(accepted)}")
            for name, accepted in CHOICES.items()
        ),
        (ENTMAX | {'temperature': 'entropy'}, r"^temperature is 'entropy'; .* are 'entmax'"),
        (ENTMAX | {'attention': 'chunked'}, r"^attention is 'chunked'; weights 'entmax' have one"),
        (ENTMAX | {'sinks': True}, r"^sinks is True; weights 'entmax' have none"),
        (
            {'attention': None, 'weights': 'stick_breaking', 'pattern': (NOPE, FORGET)},
            r"^weights is 'stick_breaking'; forget gates \(none \+ forget gate\)",
        ),
        *(
            ({'sinks': True, **gated}, r'^sinks is True; forget gates \(.*forget gate.*\) move')
            for gated in ({'position': FORGET.position}, {'pattern': (NOPE, SPLIT)})
        ),
        ({'pattern': (FORGET, SPLIT)}, r'^pattern is .*; it has forget gates of several forms'),
    ],
)
def test_errors_name_the_field_and_what_is_accepted(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.model(**changes)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (
            {'pattern': (ROPE, NOPE), 'position': Alibi()},
            r"position is 'ALiBi'; it must be left out: pattern says what layers are",
        ),
        ({'pattern': (ROPE, NOPE), 'window': 4}, 'window is 4; it must be left out: pattern says'),
        (
            {'pattern': (LayerKind(Sinusoidal()), NOPE)},
            r"pattern\[0\]\.position is 'sinusoidal'; it is added to the embeddings",
        ),
        (
            {'pattern': (LayerKind(Learned(9)),)},
            r"^pattern\[0\]\.position is 'learned'; .* layers cannot",
        ),
        (
            {'pattern': (LayerKind(T5Bias(8, 12)), LayerKind(T5Bias(8, 13)))},
            r'pattern is .*; it has several learned encodings; accepted is one',
        ),
        (
            {'pattern': (ROPE, NOPE, ROPE)},
            r'pattern is .*; it has 3 kinds of layers; there are 2 layers',
        ),
        (
            {'pattern': (LayerKind(RoPE(dims=3)), NOPE)},
            r'pattern\[0\]\.position\.dims is 3; .* even',
        ),
        (
            {'pattern': (LayerKind(Sinusoidal(), chunk=4), NOPE)},
            r"pattern\[0\]\.position is 'sinusoidal'; it is added to the embeddings",
        ),
        ({'qk_norm_weights': False}, 'qk_norm_weights is False; only a QK-norm of each head'),
        ({'output_norm_epsilon': 1e-8}, 'output_norm_epsilon is 1e-08; no norm stands behind'),
        (
            {'output_norm_epsilon': -1.0, 'block': 'both'},
            'output_norm_epsilon is -1.0; it must be finite',
        ),
        (
            {'pattern': (ROPE, LayerKind(qk_norm=True))},
            r'^pattern\[1\]\.qk_norm is True; the model has no QK-norm; accepted: qk_norm of the',
        ),
        (
            {'pattern': (LayerKind(RoPE(), qk_norm=False),) * 2, 'qk_norm': True},
            r'^qk_norm is True; every kind of layer in pattern is without it',
        ),
        (
            {'position': RoPE(), 'lam_layers': 'nope'},
            r"^lam_layers is 'nope'; every head has a position encoding \(RoPE\)",
        ),
        (
            {'pattern': (ROPE, LayerKind(Alibi(), 4)), 'lam_layers': 'nope'},
            r'every head has a position encoding \(RoPE \+ ALiBi, window 4\)',
        ),
    ],
)
def test_kinds_of_layers_that_do_not_go_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.model(**changes)


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'chunk': 0}, r'^chunk is 0; accepted: 1 to 2\*\*30, or None for no chunks'),
        ({'chunk': -4}, r'^chunk is -4; accepted: 1 to'),
        ({'chunk': 4, 'window': 3}, r'^chunk is 4; window is 3; accepted is one of them'),
    ],
)
def test_a_layer_has_a_window_or_chunks(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LayerKind(**fields)


def test_a_model_is_as_long_as_its_shortest_encoding() -> None:
    assert tiny.model(position=Learned(20)).longest == 20
    assert tiny.model(pattern=(ROPE, NOPE)).longest is None


def test_fields_of_execution_are_no_part_of_the_identity() -> None:
    outside = {f.name for f in dataclasses.fields(ModelConfig) if not f.metadata.get('identity', 1)}
    assert outside == {'remat', 'attention', 'unroll'}
