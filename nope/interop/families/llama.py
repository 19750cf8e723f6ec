"""LlamaForCausalLM: RoPE in every layer, every key seen."""

from __future__ import annotations

from nope.interop.families.decoder import Decoder, Defaults

LLAMA = Decoder(
    name='llama',
    architecture='LlamaForCausalLM',
    defaults=Defaults(longest=2048, tokens={'bos_token_id': 1, 'eos_token_id': 2}),
    biases={'attention_bias': ('qkv_bias', 'output_bias'), 'mlp_bias': ('mlp_bias',)},
    whole_heads=True,
)
