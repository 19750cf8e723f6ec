from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from nope.interop import rope_settings
from nope.interop.fields import Fields
from nope.positions import (
    NTK,
    ByParts,
    DynamicNTK,
    Linear,
    Llama3,
    LongRoPE,
    RoPE,
    Scaling,
    Unscaled,
    Yarn,
    longrope_multiplier,
)

H = 16
SHORT, LONG = tuple(1 + i / 8 for i in range(H // 2)), tuple(2.0 + i for i in range(H // 2))
ORIGINAL, SHARE = 'original_max_position_embeddings', 'partial_rotary_factor'
YARN = {'rope_type': 'yarn', 'factor': 4.0}
LONGROPE = {'rope_type': 'longrope', 'short_factor': [*SHORT], 'long_factor': [*LONG]}
LLAMA3 = {'rope_type': 'llama3', 'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0}

# Settings of a config.json with max_position_embeddings 8192, and what they are here.
SETTINGS: list[tuple[dict[str, Any], Scaling]] = [
    ({}, Unscaled()),
    ({'rope_type': 'default'}, Unscaled()),
    ({'rope_type': 'linear', 'factor': 4}, Linear(4.0)),
    ({'rope_type': 'dynamic', 'factor': 2.0}, DynamicNTK(2.0, 8192)),
    ({**YARN, ORIGINAL: 2048}, Yarn(4.0, 2048)),
    ({**YARN, 'factor': None, ORIGINAL: 2048}, Yarn(4.0, 2048)),
    (YARN, Yarn(4.0, 8192)),
    ({**YARN, ORIGINAL: 2048, 'finetuned': True}, Yarn(4.0, 2048)),
    # As in DeepSeek-R1-0528-Qwen3-8B
    ({**YARN, ORIGINAL: 2048, 'attn_factor': 0.8782488562869419}, Yarn(4.0, 2048)),
    (
        {**YARN, 'beta_fast': 20, 'beta_slow': 2, 'truncate': False},
        Yarn(4.0, 8192, 2.0, 20.0, truncate=False),
    ),
    ({**YARN, 'attention_factor': 1.0}, ByParts(4.0, 8192)),
    ({**YARN, 'attention_factor': 1.5, 'mscale': 2.0}, Yarn(4.0, 8192, multiplier=1.5)),
    ({**YARN, 'attention_factor': 1 + 0.1 * math.log(4)}, Yarn(4.0, 8192)),
    (
        {**YARN, 'mscale': 0.5, 'mscale_all_dim': 1.0},
        Yarn(4.0, 8192, multiplier=(1 + 0.05 * math.log(4)) / (1 + 0.1 * math.log(4))),
    ),
    # YaRN without its multiplier
    ({**YARN, 'mscale': 1.0, 'mscale_all_dim': 1.0}, ByParts(4.0, 8192)),
    ({**YARN, 'mscale': 3.0}, Yarn(4.0, 8192)),
    ({**YARN, 'mscale': 3.0, 'mscale_all_dim': 0}, Yarn(4.0, 8192)),
    ({**LONGROPE, ORIGINAL: 2048}, LongRoPE(SHORT, LONG, 2048, longrope_multiplier(4.0, 2048))),
    ({**LONGROPE, 'factor': 2.0}, LongRoPE(SHORT, LONG, 8192, longrope_multiplier(2.0, 8192))),
    ({**LONGROPE, 'attention_factor': 1.25}, LongRoPE(SHORT, LONG, 8192, 1.25)),
    ({**LLAMA3, ORIGINAL: 2048}, Llama3(8.0, 2048)),
    ({'rope_type': 'proportional'}, Unscaled()),
    ({'rope_type': 'proportional', 'factor': 4.0, SHARE: 1.0}, Linear(4.0)),
]

# Written and read again they are the same; NTK-aware scaling is a base of its own there.
WRITABLE = [
    Unscaled(),
    Linear(1.5),
    DynamicNTK(2.0, 2048),
    ByParts(4.0, 2048),
    ByParts(4.0, 2048, 0.5, 40.0, truncate=False),
    Yarn(4.0, 2048),
    Yarn(1.3, 2048),
    Yarn(16.0, 2048, multiplier=1.7),
    Llama3(8.0, 8192, 0.5, 3.0),
    LongRoPE(SHORT, LONG, 2048, 1.25),
    LongRoPE(SHORT, LONG, 2048, 1.0),
]


def read(config: dict[str, Any]) -> RoPE:
    return rope_settings.read(Fields(config))


def name(case: Any) -> str:
    return type(case).__name__ if isinstance(case, Scaling) else ''


@pytest.mark.parametrize(('settings', 'expected'), SETTINGS, ids=name)
def test_settings_are_read_in_the_spellings_of_both_versions(
    settings: dict[str, Any], expected: Scaling
) -> None:
    wanted = RoPE(500_000.0, expected)
    longest = {'max_position_embeddings': 8192}
    spelled = {key.replace('rope_type', 'type'): value for key, value in settings.items()}
    old = {'rope_theta': 500_000, **longest}
    assert read({**old, 'rope_scaling': settings or None}) == wanted
    assert read({**old, 'rope_scaling': spelled}) == wanted
    assert read({**longest, 'rope_parameters': {'rope_theta': 5e5, **settings}}) == wanted


@pytest.mark.parametrize('scaling', WRITABLE, ids=name)
@pytest.mark.parametrize('longest', [None, 2048])
def test_what_is_written_is_read_back(scaling: Scaling, longest: int | None) -> None:
    rope = RoPE(12_345.6, scaling)
    assert rope_settings.unwritable(rope, H) is None
    written = rope_settings.write(rope, H, longest)
    assert read(json.loads(json.dumps(written))) == rope


def test_the_original_length_of_longrope_stands_where_both_versions_look_for_it() -> None:
    """Transformers 4 decides between short and long factors by a key beside `rope_scaling`."""
    written = rope_settings.write(RoPE(1e4, LongRoPE(SHORT, LONG, 2048, 1.25)), H, 65_536)
    assert written[ORIGINAL] == written['rope_scaling'][ORIGINAL] == 2048
    assert ORIGINAL not in rope_settings.write(RoPE(1e4, Yarn(4.0, 2048)), H, 8192)


def test_ntk_aware_scaling_is_written_as_a_larger_base() -> None:
    rope = RoPE(10_000.0, NTK(4.0))
    written = rope_settings.write(rope, H, 2048)
    assert written['rope_scaling'] is None
    np.testing.assert_allclose(
        read(written).inverse_frequencies(H, 5), rope.inverse_frequencies(H, 5), rtol=1e-6
    )


@pytest.mark.parametrize(
    ('scaling', 'known', 'longest'),
    [
        # From the factor where it can: versions that take the ratio of the lengths find the same.
        (Yarn(4.0, 2048), 2048, 8192),
        (ByParts(1.5, 2048), 2048, 3072),
        (Yarn(1.3, 2048), 2048, 2048),
        # The known one where no version takes a ratio for the factor.
        (Llama3(8.0, 8192), 131_072, 131_072),
        (Llama3(32.0, 8192), 131_072, 131_072),
        (Llama3(8.0, 8192), None, 65_536),
        (LongRoPE(SHORT, LONG, 4096, 1.2), 131_072, 131_072),
        (LongRoPE(SHORT, LONG, 4096, 1.2), None, 4096),
        (LongRoPE(SHORT, LONG, 4096, factor=4.0), None, 16_384),
        (LongRoPE(SHORT, LONG, 4096, factor=4.0), 131_072, 131_072),
    ],
)
def test_the_longest_sequence_that_is_written(
    scaling: Scaling, known: int | None, longest: int
) -> None:
    written = rope_settings.write(RoPE(scaling=scaling), H, known)
    assert written['max_position_embeddings'] == longest


def test_a_multiplier_that_follows_from_the_factor_is_written() -> None:
    rope = RoPE(scaling=LongRoPE(SHORT, LONG, 2048, factor=4.0))
    written = rope_settings.write(rope, H, 2048)
    multiplier = longrope_multiplier(4.0, 2048)
    assert read(written) == RoPE(scaling=LongRoPE(SHORT, LONG, 2048, multiplier))
    del written['rope_scaling']['attention_factor']  # versions without the key take the ratio
    assert read(written) == RoPE(scaling=LongRoPE(SHORT, LONG, 2048, multiplier))


class Other(Scaling):
    pass


@pytest.mark.parametrize(
    ('rope', 'reason'),
    [
        (RoPE(interleaved=True), 'neighbours'),
        (RoPE(dims=8), '8 of 16'),
        (RoPE(scaling=Yarn(4.0, 2048), share=0.5), 'Yarn of 0.5 of the pairs'),
        (RoPE(scaling=Other()), 'no scaling like Other'),
        (RoPE(base=1.0), 'base'),
        (RoPE(base=1e300), 'base'),
        (RoPE(base=1e300, scaling=NTK(1e300)), 'base'),
    ],
)
def test_what_stock_models_lack_is_not_written(rope: RoPE, reason: str) -> None:
    assert reason in (rope_settings.unwritable(rope, H) or '')


def test_what_a_config_leaves_out_is_the_class_s_own() -> None:
    settings = {'rope_scaling': {'type': 'dynamic', 'factor': 2.0}}
    found = rope_settings.read(Fields(settings), theta=2e6, longest=512)
    assert found == RoPE(2e6, DynamicNTK(2.0, 512))


PARTLY = {'rope_type': 'proportional', SHARE: 0.25}


@pytest.mark.parametrize(
    ('settings', 'scaling'), [({}, Unscaled()), ({'factor': 4.0}, Linear(4.0))], ids=name
)
def test_proportional_settings_are_p_rope(settings: dict[str, Any], scaling: Scaling) -> None:
    wanted = RoPE(1e6, scaling, share=0.25)
    settings = {**PARTLY, **settings}
    outside = {key: value for key, value in settings.items() if key != SHARE}
    assert read({'rope_parameters': {'rope_theta': 1e6, **settings}}) == wanted
    assert read({'rope_theta': 1e6, 'rope_scaling': settings}) == wanted
    assert read({'rope_theta': 1e6, 'rope_scaling': outside, SHARE: 0.25}) == wanted


@pytest.mark.parametrize('scaling', [Unscaled(), Linear(4.0), NTK(4.0)], ids=name)
def test_p_rope_is_written_as_proportional_settings(scaling: Scaling) -> None:
    rope = RoPE(12_345.6, scaling, share=0.375)
    assert rope_settings.unwritable(rope, H) is None
    written = rope_settings.write(rope, H, 2048)
    assert written['rope_scaling']['rope_type'] == 'proportional'
    found = read(json.loads(json.dumps(written)))
    np.testing.assert_allclose(
        found.inverse_frequencies(H, 5), rope.inverse_frequencies(H, 5), rtol=1e-6
    )


@pytest.mark.parametrize(
    ('config', 'names'),
    [
        ({'rope_theta': None}, ['rope_theta is None']),
        ({'rope_theta': 1.0}, ['rope_theta is 1.0', 'above 1']),
        ({'rope_theta': 10**400}, ['rope_theta']),
        ({'rope_scaling': {'type': 'foo'}}, ['rope_scaling.type', "'foo'", 'longrope']),
        ({'rope_scaling': {'rope_type': 'yarn', 'type': 'linear'}}, ['type', 'linear', 'yarn']),
        ({'rope_scaling': {'type': 'linear'}}, ['rope_scaling.factor is missing']),
        ({'rope_scaling': {'factor': 2.0}}, ['factor', 'default']),
        ({'rope_parameters': {'full_attention': {}}}, ['full_attention']),
        (
            {'rope_scaling': {'type': 'linear', 'factor': 2}, 'rope_parameters': {}},
            ['rope_parameters', 'rope_scaling'],
        ),
        ({'rope_theta': 1e4, 'rope_parameters': {'rope_theta': 5e5}}, ['rope_theta', '10000']),
        ({'rope_scaling': {**YARN, 'beta_fast': 0.5}}, ['beta_fast', 'beta_slow']),
        ({'rope_scaling': {**YARN, ORIGINAL: 64}, ORIGINAL: 65}, [ORIGINAL, '64', '65']),
        ({'rope_scaling': {**LONGROPE, ORIGINAL: 1}}, [ORIGINAL, 'at least 2']),
        ({'rope_scaling': {**LLAMA3, 'high_freq_factor': 1.0}}, ['high_freq_factor', 'low']),
        ({'partial_rotary_factor': 0.5}, ['partial_rotary_factor is 0.5', '1']),
        ({'rope_scaling': {'type': 'linear', 'factor': 2, 'partial_rotary_factor': 0.5}}, ['0.5']),
        ({'rope_parameters': PARTLY, SHARE: 0.5}, ['partial_rotary_factor is 0.25', '0.5']),
    ],
)
def test_what_cannot_be_honoured_is_refused(config: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(ValueError) as refusal:
        read(config)
    message = str(refusal.value)
    assert message.startswith('config.json: ')
    assert all(part in message for part in names), message
