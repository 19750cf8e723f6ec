"""Olmo3ForCausalLM: OLMo 2 with windows in three of four layers, and scaled RoPE in the
others alone."""

from __future__ import annotations

from nope.interop.families.by_type import ByType
from nope.interop.families.decoder import Defaults
from nope.interop.families.interleaved import Interleaved

OLMO3 = ByType(
    name='olmo3',
    architecture='Olmo3ForCausalLM',
    defaults=Defaults(
        longest=2048,
        theta=500_000.0,
        epsilon=1e-5,
        tokens={'eos_token_id': 50_279, 'pad_token_id': 1},
    ),
    layers=Interleaved(),
    biases={'attention_bias': ('qkv_bias', 'output_bias')},
    qk_norm=True,
    fixed={'block': 'post', 'qk_norm_over': 'projection'},
    notes={'sliding_window_pattern': (4,)},
    sliding_theta=500_000.0,
)
