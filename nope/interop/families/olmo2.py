"""Olmo2ForCausalLM: norms behind attention and MLP, QK-norm of all heads together."""

from __future__ import annotations

from nope.interop.families.decoder import Decoder, Defaults

OLMO2 = Decoder(
    name='olmo2',
    architecture='Olmo2ForCausalLM',
    defaults=Defaults(
        longest=2048, epsilon=1e-5, tokens={'eos_token_id': 50_279, 'pad_token_id': 1}
    ),
    biases={'attention_bias': ('qkv_bias', 'output_bias')},
    qk_norm=True,
    fixed={'block': 'post', 'qk_norm_over': 'projection'},
)
