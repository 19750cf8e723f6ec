"""PyTorch peer of bench_train.py: the same steps in PyTorch and Hugging Face's Llama.

Runs in an interpreter of its own and takes requests as in `_peer.py`; the case is a JSON argument.

    kind: 'pretrain' (AdamW, clipping), 'head_scale' (frozen model, one trained scalar per head
        multiplied into q), 'evaluate' (loss by position, and with `entropy` the entropy of
        every attention row, from the weights of eager attention).
    on, dtype: the device ('cpu', 'cuda'), and what autocast computes in ('float32': no autocast).
    remat: whether layers are computed again in the backward pass.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(
    0, os.path.dirname(os.path.abspath(__file__))
)  # this project may be none of its own

import json
import sys
from collections.abc import Callable

import _peer
import torch
import transformers
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask
from transformers.models.llama.modeling_llama import eager_attention_forward


def scaled_attention(module, query, key, value, attention_mask, **kwargs):
    """SDPA on queries multiplied by the layer's scalar per head."""
    query = query * module.head_scale[None, :, None, None]
    return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)


def entropy_attention(module, query, key, value, attention_mask, **kwargs):
    """Eager attention that leaves the entropy [B, N, T] of its weights on the module."""
    out, weights = eager_attention_forward(module, query, key, value, attention_mask, **kwargs)
    module.entropy = torch.special.entr(weights).sum(-1)
    return out, None


AttentionInterface.register('head_scale', scaled_attention)
AttentionMaskInterface.register('head_scale', sdpa_mask)
AttentionInterface.register('entropy', entropy_attention)
AttentionMaskInterface.register('entropy', eager_mask)


def build(case: dict, attention: str) -> LlamaForCausalLM:
    shape = case['shape']
    config = LlamaConfig(
        hidden_size=shape['width'],
        intermediate_size=shape['mlp_width'],
        num_hidden_layers=shape['layers'],
        num_attention_heads=shape['heads'],
        num_key_value_heads=shape['kv_heads'],
        vocab_size=shape['vocab_size'],
        max_position_embeddings=case['length'],
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
        use_cache=False,
        attn_implementation=attention,
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).to(case['on'])
    model.in_bfloat16 = case['dtype'] == 'bfloat16'
    if case['remat']:
        model.gradient_checkpointing_enable({'use_reentrant': False})
    return model


def losses(model: LlamaForCausalLM, blocks: torch.Tensor) -> torch.Tensor:
    """Negative log-likelihood of every target, [B * T]."""
    with torch.autocast(blocks.device.type, torch.bfloat16, enabled=model.in_bfloat16):
        logits = model(input_ids=blocks[:, :-1]).logits.float()
    return functional.cross_entropy(logits.flatten(0, 1), blocks[:, 1:].flatten(), reduction='none')


def pretrain(case: dict, blocks: torch.Tensor) -> Callable[[], None]:
    model = build(case, 'sdpa').train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True
    )

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        losses(model, blocks).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def head_scale(case: dict, blocks: torch.Tensor) -> Callable[[], None]:
    model = build(case, 'head_scale').train().requires_grad_(False)
    scales = []
    for layer in model.model.layers:
        ones = torch.ones(case['shape']['heads'], device=case['on'])
        layer.self_attn.head_scale = nn.Parameter(ones)
        scales.append(layer.self_attn.head_scale)
    optimizer = torch.optim.AdamW(scales, lr=0.1, betas=(0.9, 0.95), weight_decay=0.0, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        losses(model, blocks).mean().backward()
        nn.utils.clip_grad_norm_(scales, 1.0)
        optimizer.step()
        with torch.no_grad():
            for scale in scales:
                scale.clamp_(min=1.0)

    return step


def evaluate(case: dict, blocks: torch.Tensor) -> Callable[[], None]:
    model = build(case, 'entropy' if case['entropy'] else 'sdpa').eval()

    @torch.inference_mode()
    def run() -> None:
        losses(model, blocks)

    return run


def main() -> None:
    case = json.loads(sys.argv[1])
    torch.manual_seed(0)
    shape = case['batch'], case['length'] + 1
    blocks = torch.randint(case['shape']['vocab_size'], shape, device=case['on'])
    step = {'pretrain': pretrain, 'head_scale': head_scale, 'evaluate': evaluate}[case['kind']](
        case, blocks
    )

    def run() -> None:
        step()
        if case['on'] == 'cuda':
            torch.cuda.synchronize()

    _peer.serve(run, f'torch {torch.__version__}, transformers {transformers.__version__}')


if __name__ == '__main__':
    main()
