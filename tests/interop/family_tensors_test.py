"""Tensors of families: every parameter once, fused rows, names as in files."""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nope.interop.families import FAMILIES, Family
from nope.interop.families.inside import Inside
from nope.model import ModelConfig, counts
from tests.interop.family_cases import (
    BY_NAME,
    CASES,
    NONE,
    OF_FAMILY,
    ROPE,
    assert_same,
    bloom,
    by_name,
    decoder,
    draw,
    mpt,
    parameters_of,
)


@pytest.mark.parametrize(('family', 'config'), CASES)
def test_tensors_hold_every_parameter_once(family: str, config: ModelConfig) -> None:
    wanted = parameters_of(config)
    tensors = BY_NAME[family].tensors(config, NONE)
    found = [(part.path, part.layer) for tensor in tensors for part in tensor.parts]
    expected = [
        (path, layer)
        for path in wanted
        for layer in (range(config.layers) if path[0] == 'layers' and not config.apart else [None])
    ]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert sum(math.prod(tensor.shape) for tensor in tensors) == counts.parameters(config)


@pytest.mark.parametrize('dtype', [np.float32, ml_dtypes.bfloat16], ids=['float32', 'bfloat16'])
@pytest.mark.parametrize(('family', 'config'), CASES)
def test_tensors_come_apart_and_together_bit_for_bit(
    family: str, config: ModelConfig, dtype: Any
) -> None:
    shapes = parameters_of(config)
    for tensor in BY_NAME[family].tensors(config, NONE):
        if re.search(r'\.[12]\.', tensor.name):
            continue  # layers have the same layouts
        array = draw(tensor.shape, dtype)
        parts = tensor.layout.split(array)
        for part, piece in zip(tensor.parts, parts, strict=True):
            assert piece.shape == shapes[part.path][0 if part.layer is None else 1 :]
        assert_same(tensor.layout.join(parts), array)
        for piece, again in zip(parts, tensor.layout.split(tensor.layout.join(parts)), strict=True):
            assert_same(again, piece)


@pytest.mark.parametrize('prefix', ['model.', ''])
@pytest.mark.parametrize(
    'family', ['llama', 'mistral', 'qwen2', 'qwen3', 'smollm3', 'cohere2', 'olmo2', 'olmo3']
)
def test_decoder_names_follow_the_file(family: str, prefix: str) -> None:
    config = decoder(position=ROPE)
    own = by_name(BY_NAME[family].tensors(config, NONE))
    names = frozenset(re.sub('^model.', prefix, name) for name in own)
    assert frozenset(by_name(BY_NAME[family].tensors(config, names))) == names


@pytest.mark.parametrize('family', ['llama', 'qwen3'])
def test_lambda_of_all_layers_is_wanted_where_a_file_has_one(family: str) -> None:
    config, name = decoder(position=ROPE), 'model.layers.1.self_attn.scale_param'
    assert name not in by_name(BY_NAME[family].tensors(config, NONE))
    tensors = BY_NAME[family].tensors(config, frozenset({name, 'model.embed_tokens.weight'}))
    found = {t.name: t for t in tensors if t.name.endswith('scale_param')}
    assert sorted(found) == [f'model.layers.{i}.self_attn.scale_param' for i in range(3)]
    (part,) = found[name].parts
    assert (part.path, part.layer, found[name].shape) == (('lam',), 1, (4,))
    array = draw((4,), np.float32)
    assert_same(found[name].layout.split(array)[0], array)


@pytest.mark.parametrize(
    ('family', 'config', 'name'),
    [
        ('llama', decoder(), 'model.layers.11.self_attn.rotary_emb.inv_freq'),
        ('llama', decoder(), 'layers.0.self_attn.rotary_emb.inv_freq'),
        ('mistral', decoder(), 'model.rotary_emb.inv_freq'),
        ('smollm3', decoder(tied_head=True), 'lm_head.weight'),
        ('gemma4_text', OF_FAMILY['gemma4_text'], 'model.layers.2.self_attn.k_proj.weight'),
        ('gemma4_text', OF_FAMILY['gemma4_text'], 'layers.3.self_attn.k_norm.weight'),
        ('bloom', bloom(), 'lm_head.weight'),
        ('mpt', mpt(), 'lm_head.weight'),
    ],
)
def test_what_is_left_out_has_a_reason(family: str, config: ModelConfig, name: str) -> None:
    (rule,) = (i for i in BY_NAME[family].ignored(config) if i.pattern.fullmatch(name))
    assert rule.reason
    assert name not in by_name(BY_NAME[family].tensors(config, NONE))


def test_keys_of_layers_that_have_them_are_never_left_out() -> None:
    config = OF_FAMILY['gemma4_text']
    names = by_name(BY_NAME['gemma4_text'].tensors(config, NONE))
    rules = [rule.pattern for rule in BY_NAME['gemma4_text'].ignored(config)]
    assert not [name for name in names if any(rule.fullmatch(name) for rule in rules)]
    assert 'model.layers.0.self_attn.k_proj.weight' in names
    assert 'model.layers.1.self_attn.v_proj.weight' not in names  # its values are its keys


@pytest.mark.parametrize('family', FAMILIES, ids=lambda family: family.name)
def test_a_head_of_its_own_is_never_left_out(family: Family) -> None:
    config = bloom(tied_head=False) if family.name == 'bloom' else decoder(position=ROPE)
    name = 'language_model.' * isinstance(family, Inside) + 'lm_head.weight'
    assert by_name(family.tensors(config, NONE))[name] == (40, 24)
    assert not any(rule.pattern.fullmatch(name) for rule in family.ignored(config))
