"""Families: which one owns a directory, and what none of them writes."""

from __future__ import annotations

import dataclasses

import pytest

from nope.interop.families import family_of, writer_of
from nope.model import LayerKind, ModelConfig
from nope.model.lam import GivenLaw, LogFloor, LogLength
from nope.positions import Alibi, ByParts, Learned, Linear, NoPE, RoPE, Yarn
from tests.interop.family_cases import (
    BY_NAME,
    NONE,
    ROPE,
    SOME_LONGROPE,
    behind,
    beside,
    bloom,
    both_ends,
    decoder,
    mpt,
)
from tests.interop.family_sizes_test import LIT_NAMES

UNTRUNCATED = LayerKind(RoPE(1e4, Yarn(4.0, 16, truncate=False)))
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
        (decoder(position=RoPE(interleaved=True)), 'neighbours'),
        (decoder(position=RoPE(dims=4), qkv_bias=True), '4 of 6'),
        (decoder(position=RoPE(scaling=Linear(2.0), dims=4)), 'plain RoPE or'),
        (decoder(position=SOME_LONGROPE, head_dim=8), 'head_dim is 8'),
        (decoder(pattern=(LayerKind(ROPE), LayerKind(RoPE()))), 'RoPE of one kind'),
        (
            decoder(pattern=(LayerKind(ROPE), LayerKind(ROPE, qk_norm=False)), qk_norm=True),
            'some of its layers have no QK-norm',
        ),
        (decoder(pattern=(LayerKind(ROPE, chunk=4), LayerKind())), 'chunks of 4'),
        (decoder(position=ROPE, position_range=64), 'spread over 64'),
        (decoder(qk_norm=True), 'RoPE'),
        (decoder(softmax_scale=0.5), 'softmax_scale is 0.5'),
        (decoder(position=ROPE, block='post', norm='layer'), 'block is'),
        (beside(position=ROPE), 'those with RoPE have a window'),
        (beside(position=NoPE(), window=5), 'those with RoPE have a window'),
        (beside(pattern=(LayerKind(ROPE, 5), LayerKind(RoPE(), 5))), 'RoPE of one kind'),
        (beside(position=ROPE, window=5, law=LAW), 'law is GivenLaw'),
        (behind(pattern=(LayerKind(ROPE, 5), LayerKind(NoPE()))), 'a window and one without'),
        (
            behind(pattern=(LayerKind(ROPE, 5), LayerKind(RoPE(), 5))),
            'not RoPE of one kind with a window',
        ),
        (
            behind(pattern=(LayerKind(RoPE(1e4, Linear(2.0)), 5), LayerKind(ROPE))),
            'with a window have RoPE',
        ),
        (behind(pattern=(LayerKind(ROPE, 5), UNTRUNCATED)), 'ramp is not truncated'),
        (
            behind(qk_norm_over='head', pattern=(LayerKind(ROPE, 5), LayerKind(ROPE))),
            'those with RoPE have a window',
        ),
        (
            behind(qk_norm_over='head', pattern=(LayerKind(ROPE), LayerKind())),
            'those with RoPE have a window',
        ),
        (
            decoder(position=RoPE(1e6, ByParts(16.0, 32)), law=LAW),
            'spans of 16, and its scaling is from 32',
        ),
        (decoder(pattern=(LayerKind(RoPE()), LayerKind()), law=LAW), 'law is GivenLaw'),
        (both_ends(embedding_multiplier=4.0), 'its embeddings are multiplied by 4'),
        (both_ends(softmax_scale=0.3), 'softmax_scale is 0.3, not 1 / sqrt of a whole number'),
        (
            decoder(sinks=True, pattern=(LayerKind(ROPE), LayerKind(RoPE(1e4, Linear(2.0))))),
            'not one rule of RoPE or none',
        ),
        (decoder(position=ROPE, sinks=True, softmax_scale=0.5, norm='layer'), 'norm is'),
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
