from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from nope.positions import (
    KINDS,
    NTK,
    SCALINGS,
    Alibi,
    ByParts,
    DynamicNTK,
    ForgetGate,
    Kerple,
    Learned,
    Linear,
    Llama3,
    LongRoPE,
    NoPE,
    Position,
    RoPE,
    Sandwich,
    ScaleInvariant,
    Sinusoidal,
    Split,
    T5Bias,
    Unscaled,
    Yarn,
    from_section,
)
from nope.positions.base import Table
from tests.positions import cases

FIELD = 'runs.a.model.position'


def made(train_length: int = 512, **section: Any) -> Position:
    return from_section(section, train_length, FIELD)


def scaled(kind: str, **fields: Any) -> Position:
    return made(kind='rope', scaling={'kind': kind, **fields})


@pytest.mark.parametrize('name', cases.ENCODINGS)
def test_what_a_bias_gives_keys_behind_the_query_is_finite_with_its_gradient(name: str) -> None:
    """It is masked, but 0 times an infinite slope is no number."""
    position = cases.ENCODINGS[name]
    table = position.table(8, 4)
    array = None if table is None else jnp.full(table.shape, 0.25)
    if position.bias(4, array) is None:
        return
    distances_D = jnp.arange(-20, 21)

    def total(array: Any) -> jax.Array:
        bias = position.bias(4, array)
        assert bias is not None
        factors_ND = bias.factors_by_distance(distances_D)
        return bias.by_distance(distances_D).sum() + (
            0.0 if factors_ND is None else factors_ND.sum()
        )

    assert jnp.isfinite(total(array))
    if array is not None:
        assert jnp.all(jnp.isfinite(jax.grad(total)(array)))


def test_tables_that_are_drawn_in_other_ways_are_the_same() -> None:
    drawn = [Table((2, 4), ('buckets', 'heads'), draw=lambda *given: jnp.zeros(2)) for _ in 'ab']
    assert drawn[0] == drawn[1] != dataclasses.replace(drawn[0], shape=(3, 4))


def test_the_tests_have_one_of_every_kind() -> None:
    assert {name: type(value) for name, value in cases.ENCODINGS.items()} == KINDS
    assert {name: type(value) for name, value in cases.SCALINGS.items()} == SCALINGS


@pytest.mark.parametrize(
    ('section', 'expected'),
    [
        ({'kind': 'none'}, NoPE()),
        ({'kind': 'rope'}, RoPE(10_000.0)),
        (
            {'kind': 'rope', 'base': 500, 'dims': 16, 'interleaved': True},
            RoPE(500.0, dims=16, interleaved=True),
        ),
        ({'kind': 'rope', 'share': 0.75}, RoPE(share=0.75)),
        ({'kind': 'alibi'}, Alibi(8.0)),
        ({'kind': 'alibi', 'max_exponent': 4}, Alibi(4.0)),
        ({'kind': 't5'}, T5Bias(32, 128)),
        ({'kind': 't5', 'buckets': 8, 'max_distance': 20}, T5Bias(8, 20)),
        ({'kind': 'kerple'}, Kerple()),
        ({'kind': 'sandwich'}, Sandwich(128, 10_000.0)),
        ({'kind': 'sandwich', 'dims': 8, 'base': 500}, Sandwich(8, 500.0)),
        ({'kind': 'scale_invariant'}, ScaleInvariant(10.0, 0.5, 10_000.0)),
        (
            {'kind': 'scale_invariant', 'tau': 2, 'share': 0, 'base': 500},
            ScaleInvariant(2.0, 0.0, 500.0),
        ),
        ({'kind': 'sinusoidal'}, Sinusoidal(10_000.0)),
        ({'kind': 'learned'}, Learned(2048)),
        ({'kind': 'learned', 'size': 7}, Learned(7)),
        ({'kind': 'forget'}, ForgetGate(0.0)),
        ({'kind': 'split', 'local': {'kind': 'alibi'}}, Split(Alibi())),
        ({'kind': 'split', 'local': {'kind': 'forget', 'start': 2}}, Split(ForgetGate(2.0))),
        (
            {'kind': 'split', 'local': {'kind': 'rope', 'base': 500}, 'window': 8, 'share': 0.25},
            Split(RoPE(500.0), 0.25, 8),
        ),
    ],
)
def test_encodings(section: dict[str, Any], expected: Position) -> None:
    assert made(**section) == expected


@pytest.mark.parametrize(
    ('section', 'expected'),
    [
        ({'kind': 'none'}, Unscaled()),
        ({'kind': 'linear', 'factor': 4}, Linear(4.0)),
        ({'kind': 'ntk', 'factor': 4.0}, NTK(4.0)),
        ({'kind': 'dynamic_ntk', 'factor': 2.0}, DynamicNTK(2.0, 512)),
        ({'kind': 'dynamic_ntk', 'factor': 2.0, 'train_length': 64}, DynamicNTK(2.0, 64)),
        ({'kind': 'by_parts', 'factor': 2.0}, ByParts(2.0, 512, 1.0, 32.0, True)),
        ({'kind': 'yarn', 'factor': 4.0}, Yarn(4.0, 512)),
        ({'kind': 'yarn', 'factor': 4.0, 'multiplier': None}, Yarn(4.0, 512)),
        ({'kind': 'yarn', 'factor': 4.0, 'multiplier': 2}, Yarn(4.0, 512, multiplier=2.0)),
        ({'kind': 'yarn', 'factor': 4.0, 'truncate': False}, Yarn(4.0, 512, truncate=False)),
        ({'kind': 'llama3', 'factor': 8.0}, Llama3(8.0, 512, 1.0, 4.0)),
        (
            {'kind': 'longrope', 'short': [1, 1.5], 'long': (2.0, 4)},
            LongRoPE((1.0, 1.5), (2.0, 4.0), 512),
        ),
        (
            {'kind': 'longrope', 'short': [1.0], 'long': [2.0], 'factor': 4, 'multiplier': None},
            LongRoPE((1.0,), (2.0,), 512, factor=4.0),
        ),
    ],
)
def test_rules_of_scaling(section: dict[str, Any], expected: Any) -> None:
    found = scaled(**section)
    assert found == RoPE(scaling=expected)
    assert hash(found) == hash(RoPE(scaling=expected))


def test_a_whole_number_becomes_the_fields_float() -> None:
    """It would make another identity of the same encoding."""
    found = made(kind='rope', base=500, scaling={'kind': 'linear', 'factor': 4})
    assert isinstance(found, RoPE) and isinstance(found.scaling, Linear)
    assert isinstance(found.base, float) and isinstance(found.scaling.factor, float)


def test_the_section_is_left_as_it_was() -> None:
    section = {'kind': 'rope', 'scaling': {'kind': 'yarn', 'factor': 2.0}}
    before = copy.deepcopy(section)
    from_section(section, 512, FIELD)
    assert section == before


@pytest.mark.parametrize(
    ('section', 'message'),
    [
        ({}, r'position\.kind is None; accepted: none, rope, alibi, t5, sin.*, learn'),
        ({'kind': 'sine'}, r"runs\.a\.model\.position\.kind is 'sine'; accepted: none, rope"),
        ({'kind': ['none']}, r"position\.kind is \['none'\]; accepted: none, rope"),
        ({'kind': 'none', 'base': 1.0}, r'position\.base is unknown for NoPE; accepted: kind$'),
        ({'kind': 'alibi', 'slope': 1}, r'position\.slope is unknown .*: kind, max_exponent'),
        ({'kind': 't5', 'scaling': {'kind': 'none'}}, r'position\.scaling is unknown for T5Bias'),
        ({'kind': 't5', 'buckets': True}, r'position\.buckets is True; accepted is int'),
        ({'kind': 't5', 'buckets': 8.0}, r'position\.buckets is 8.0; accepted is int'),
        ({'kind': 'learned', 'size': '8'}, r"position\.size is '8'; accepted is int"),
        ({'kind': 'alibi', 'max_exponent': '8'}, r"max_exponent is '8'; accepted is float"),
        ({'kind': 'alibi', 'max_exponent': True}, r'max_exponent is True; accepted is float'),
        ({'kind': 'alibi', 'max_exponent': None}, r'max_exponent is None; accepted is float'),
        ({'kind': 'rope', 'interleaved': 1}, r'position\.interleaved is 1; accepted is bool'),
        *(
            ({'kind': 'alibi', 'max_exponent': value}, r'max_exponent is .*; accepted: above 0, be')
            for value in (0.0, -1.0, 1000.0, math.nan, math.inf)
        ),
        ({'kind': 'learned', 'size': 0}, r'position\.size is 0; it must be at least 1'),
        ({'kind': 'sinusoidal', 'base': 0}, r'position\.base is 0.0; it must be finite and above'),
        ({'kind': 't5', 'buckets': 1}, r'position\.buckets is 1; it must be at least 2'),
        ({'kind': 't5', 'max_distance': 16}, r'max_distance is 16; it must be above half of buck'),
        ({'kind': 'rope', 'base': -1}, r'position\.base is -1.0; it must be finite and above 0'),
        ({'kind': 'rope', 'dims': -2}, r'position\.dims is -2; accepted: an even number from 4'),
        ({'kind': 'rope', 'dims': 0}, r'position\.dims is 0; accepted: .*, or None for all'),
        ({'kind': 'rope', 'share': 0}, r'position\.share is 0.0; accepted: above 0, at most 1'),
        ({'kind': 'rope', 'share': 1.01}, r'position\.share is 1.01; accepted: above 0, at m'),
        ({'kind': 'scale_invariant', 'tau': 0}, r'position\.tau is 0.0; it must be finite and'),
        ({'kind': 'scale_invariant', 'share': -1}, r'position\.share is -1.0; accepted: 0 to 1'),
        ({'kind': 'scale_invariant', 'base': 0}, r'position\.base is 0.0; it must be finite'),
        ({'kind': 'kerple', 'dims': 8}, r'position\.dims is unknown for Kerple; accepted: kind$'),
        ({'kind': 'sandwich', 'dims': 7}, r'position\.dims is 7; accepted: even numbers, at l'),
        ({'kind': 'sandwich', 'base': -1}, r'position\.base is -1.0; it must be finite and ab'),
        ({'kind': 'forget', 'start': float('inf')}, r'position\.start is inf; it must be finite'),
        ({'kind': 'split'}, r'position\.local is missing; Split needs it'),
        ({'kind': 'split', 'local': 'alibi'}, r"position\.local is 'alibi'; .*'kind': NAME"),
        ({'kind': 'split', 'local': {'kind': 'alibi', 'slope': 1}}, r'local\.slope is unknown'),
        ({'kind': 'split', 'local': {'kind': 'none'}}, r"position\.local is 'none'; .* window"),
        (
            {'kind': 'split', 'local': {'kind': 'learned'}},
            r"position\.local is 'learned.*; it must",
        ),
        ({'kind': 'split', 'local': {'kind': 'alibi'}, 'share': 1}, r'share is 1.0; accepted: ab'),
        ({'kind': 'split', 'local': {'kind': 'alibi'}, 'window': 0}, r'window is 0; accepted: 1 t'),
        ({'kind': 'rope', 'scaling': 'yarn'}, r"position\.scaling is 'yarn'; .*'kind': NAME"),
    ],
)
def test_errors_name_the_field_and_what_is_accepted(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**section)


BY_PARTS = {'kind': 'by_parts', 'factor': 2.0}


@pytest.mark.parametrize('section', ['rope', None, [('kind', 'none')]])
def test_a_section_is_a_mapping(section: Any) -> None:
    with pytest.raises(ValueError, match=r"^runs\.a\.model\.position is .*; .* {'kind': NAME, "):
        from_section(section, 512, FIELD)


@pytest.mark.parametrize(
    ('section', 'message'),
    [
        ({'kind': 'pi'}, r"model\.position\.scaling\.kind is 'pi'; accepted: none, linear, ntk"),
        ({'kind': 'linear'}, r'position\.scaling\.factor is missing; Linear needs it'),
        ({'kind': 'longrope', 'short': [1.0]}, r'scaling\.long is missing; LongRoPE needs it'),
        ({'kind': 'longrope', 'short': None, 'long': [1.0]}, r'scaling\.short is None; accepted'),
        ({'kind': 'longrope', 'short': 1.0, 'long': [1.0]}, r'scaling\.short is 1.0; accepted is'),
        ({'kind': 'longrope', 'short': ['1'], 'long': [1.0]}, r"scaling\.short is '1'; .* float"),
        ({'kind': 'none', 'factor': 2.0}, r'scaling\.factor is unknown for Unscaled; .*: kind$'),
        ({'kind': 'linear', 'factor': True}, r'scaling\.factor is True; accepted is float'),
        ({'kind': 'linear', 'factor': 0}, r'scaling\.factor is 0.0; it must be finite and above'),
        (BY_PARTS | {'fast': 1.0}, r'scaling\.fast is 1.0; it must be above slow, 1.0'),
        (BY_PARTS | {'slow': 0.0}, r'scaling\.slow is 0.0; it must be finite and above 0'),
        (
            {'kind': 'llama3', 'factor': 8.0, 'low': 2.0, 'high': 1.0},
            r'scaling\.high is 1.0; it must be above low, 2.0',
        ),
        (
            {'kind': 'longrope', 'short': (1.0,), 'long': (-1.0,)},
            r'scaling\.long is -1.0; it must be finite and above 0',
        ),
        ({'kind': 'ntk', 'factor': float('nan')}, r'scaling\.factor is nan; it must be finite'),
        ({'kind': 'yarn', 'factor': 2.0, 'multiplier': '2'}, r"scaling\.multiplier is '2'; acc"),
        ({'kind': 'yarn', 'factor': 2.0, 'multiplier': -1}, r'scaling\.multiplier is -1.0; it mu'),
        ({'kind': 'yarn', 'factor': 2.0, 'truncate': 0}, r'scaling\.truncate is 0; accepted is b'),
        ({'kind': 'dynamic_ntk', 'factor': 2.0, 'train_length': 1.5}, r'length is 1.5; .*int'),
        ({'kind': 'dynamic_ntk', 'factor': 2.0, 'train_length': 0}, r'train_length is 0; it must'),
    ],
)
def test_errors_of_scaling_name_the_field_too(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scaled(**section)


def test_descriptions_tell_them_apart() -> None:
    """The kind comes first, then ', ': folders are named by it."""
    rope = [RoPE(scaling=scaling) for scaling in cases.SCALINGS.values()]
    described = [p.describe() for p in [*cases.ENCODINGS.values(), *rope[1:]]]
    assert len(set(described)) == len(described)
    assert {p.describe().split(',')[0] for p in rope} == {'RoPE'}
