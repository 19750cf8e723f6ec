"""Families: which one owns a directory, and what none of them writes."""

from __future__ import annotations

import dataclasses

import pytest

from nope.interop.families import family_of, writer_of
from nope.model import LayerKind, ModelConfig
from nope.model.lam import GivenLaw, LogFloor, LogLength
from nope.positions import (
    Alibi,
    ByParts,
    DynamicYarn,
    Learned,
    Linear,
    NoPE,
    Rotary,
    Yarn,
)
from tests.interop.family_cases import (
    BY_NAME,
    NONE,
    ROTARY,
    SOME_LONGROPE,
    behind,
    beside,
    bloom,
    both_ends,
    decoder,
    mpt,
)
from tests.interop.family_sizes_test import LIT_NAMES

UNTRUNCATED = LayerKind(Rotary(1e4, Yarn(4.0, 16, truncate=False)))
LAW = GivenLaw(LogFloor(16), 0.1, first=0)


@pytest.mark.parametrize(
    ('config', 'names', 'name'),
    [
        ({'model_type': 'llama'}, NONE, 'llama'),
        ({'model_type': 'llama'}, LIT_NAMES, 'lit-gpt'),
        ({'n_layer': 2}, LIT_NAMES, 'lit-gpt'),
        ({'architectures': ['Qwen3ForCausalLM']}, NONE, 'qwen3'),
        ({'model_type': 'mpt', 'architectures': ['MPTForCausalLM']}, NONE, 'mpt'),
    ],
)
def test_a_family_knows_its_own(config: dict, names: frozenset[str], name: str) -> None:
    assert family_of(config, names).name == name


@pytest.mark.parametrize(
    'config',
    [{}, {'model_type': 'gpt2'}, {'model_type': ['llama']}, {'architectures': 'LlamaForCausalLM'}],
)
def test_other_families_are_named(config: dict) -> None:
    with pytest.raises(ValueError) as refusal:
        family_of(config, NONE)
    message = str(refusal.value)
    assert message.startswith('config.json: model_type is ')
    assert all(name in message for name in BY_NAME)
    assert all(str(value).strip("[]'") in message for value in config.values())


@pytest.mark.parametrize(
    ('config', 'reason'),
    [
        (decoder(position=Learned(8)), 'learned'),
        (decoder(law=GivenLaw(LogLength(16), 0.1)), 'law is GivenLaw'),
        (decoder(law=dataclasses.replace(LAW, first=1)), 'not LogFloor in all heads with first 0'),
        (decoder(position=Rotary(scaling=DynamicYarn())), 'DynamicYarn'),
        (decoder(position=Rotary(interleaved=True)), 'neighbours'),
        (decoder(position=Rotary(dims=4), qkv_bias=True), '4 of 6'),
        (decoder(position=Rotary(scaling=Linear(2.0), dims=4)), 'plain rotary positions or'),
        (decoder(position=SOME_LONGROPE, head_dim=8), 'head_dim is 8'),
        (decoder(pattern=(LayerKind(ROTARY), LayerKind(Rotary()))), 'one rotary encoding'),
        (
            decoder(pattern=(LayerKind(ROTARY), LayerKind(ROTARY, qk_norm=False)), qk_norm=True),
            'some of its layers have no QK-norm',
        ),
        (decoder(pattern=(LayerKind(ROTARY, chunk=4), LayerKind())), 'chunks of 4'),
        (decoder(position=ROTARY, position_range=64), 'spread over 64'),
        (decoder(qk_norm=True), 'rotary'),
        (decoder(softmax_scale=0.5), 'softmax_scale is 0.5'),
        (decoder(position=ROTARY, block='post', norm='layer'), 'block is'),
        (beside(position=ROTARY), 'those with rotary positions have a window'),
        (beside(position=NoPE(), window=5), 'those with rotary positions have a window'),
        (beside(pattern=(LayerKind(ROTARY, 5), LayerKind(Rotary(), 5))), 'one rotary encoding'),
        (beside(position=ROTARY, window=5, law=LAW), 'law is GivenLaw'),
        (behind(pattern=(LayerKind(ROTARY, 5), LayerKind(NoPE()))), 'a window and one without'),
        (
            behind(pattern=(LayerKind(ROTARY, 5), LayerKind(Rotary(), 5))),
            'not one rotary encoding with a window',
        ),
        (
            behind(pattern=(LayerKind(Rotary(1e4, Linear(2.0)), 5), LayerKind(ROTARY))),
            'with a window have rotary',
        ),
        (behind(pattern=(LayerKind(ROTARY, 5), UNTRUNCATED)), 'ramp is not truncated'),
        (
            behind(qk_norm_over='head', pattern=(LayerKind(ROTARY, 5), LayerKind(ROTARY))),
            'those with rotary positions have a window',
        ),
        (
            behind(qk_norm_over='head', pattern=(LayerKind(ROTARY), LayerKind())),
            'those with rotary positions have a window',
        ),
        (
            decoder(position=Rotary(1e6, ByParts(16.0, 32)), law=LAW),
            'spans of 16, and its scaling is from 32',
        ),
        (decoder(pattern=(LayerKind(Rotary()), LayerKind()), law=LAW), 'law is GivenLaw'),
        (both_ends(embedding_multiplier=4.0), 'its embeddings are multiplied by 4'),
        (both_ends(softmax_scale=0.3), 'softmax_scale is 0.3, not 1 / sqrt of a whole number'),
        (
            decoder(sinks=True, pattern=(LayerKind(ROTARY), LayerKind(Rotary(1e4, Linear(2.0))))),
            'not one rotary rule or none',
        ),
        (decoder(position=ROTARY, sinks=True, softmax_scale=0.5, norm='layer'), 'norm is'),
        (bloom(position=Alibi(4.0)), 'ALiBi'),
        (bloom(window=3), 'window 3'),
        (bloom(kv_heads=2), 'kv_heads is 2'),
        (bloom(head_dim=8), 'head_dim is 8'),
        (mpt(norm_bias=True), 'norm_bias is True'),
    ],
)
def test_what_no_stock_class_computes_is_not_written(config: ModelConfig, reason: str) -> None:
    with pytest.raises(ValueError) as refusal:
        writer_of(config)
    message = str(refusal.value)
    assert reason in message
    assert all(f'{name}: ' in message for name in BY_NAME)
