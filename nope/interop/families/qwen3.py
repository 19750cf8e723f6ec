"""Qwen3ForCausalLM: norms of queries and keys; windows in some layers."""

from __future__ import annotations

from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.families.qwen2 import Windowed

QWEN3 = Decoder(
    name='qwen3',
    architecture='Qwen3ForCausalLM',
    defaults=Defaults(longest=32_768, kv_heads=32, head_dim=128),
    layers=Windowed(),
    biases={'attention_bias': ('qkv_bias', 'output_bias')},
    qk_norm=True,
)
