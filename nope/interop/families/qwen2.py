"""Qwen2ForCausalLM: biases of queries, keys and values; windows in some layers."""

from __future__ import annotations

from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.families.windowed import Windowed

QWEN2 = Decoder(
    name='qwen2',
    architecture='Qwen2ForCausalLM',
    defaults=Defaults(longest=32_768, kv_heads=32),
    layers=Windowed(),
    always=('qkv_bias',),
)
