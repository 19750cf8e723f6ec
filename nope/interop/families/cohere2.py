"""Cohere2ForCausalLM (Command R7B, Command A): attention and MLP side by side behind one LayerNorm,
RoPE of neighbouring dimensions in layers with a window, none in the others."""

from __future__ import annotations

from nope.interop.families.decoder import Decoder, Defaults
from nope.interop.families.interleaved import Hybrid

COHERE2 = Decoder(
    name='cohere2',
    architecture='Cohere2ForCausalLM',
    defaults=Defaults(
        longest=8192,
        tied=True,
        epsilon=1e-5,
        logit_scale=0.0625,
        tokens={'bos_token_id': 5, 'eos_token_id': 255_001, 'pad_token_id': 0},
    ),
    layers=Hybrid(),
    biases={'attention_bias': ('qkv_bias', 'output_bias')},
    fixed={'block': 'parallel', 'norm': 'layer', 'norm_bias': False},
    free=('logit_multiplier',),
    epsilon='layer_norm_eps',
    neighbours=True,
    # What published files say besides, which stock does not look at.
    notes={
        'use_parallel_block': (True,),
        'use_gated_activation': (True,),
        'rotary_pct': (1.0,),
        'position_embedding_type': ('rope_gptj',),
        'order_of_interleaved_layers': ('local_attn_first',),
    },
)
