"""PyTorch side of a comparison, in an interpreter of its own; `harness.Peer` is the other end.

The request is a JSON argument. The first answer comes without a question: versions, and the first
run's result, time and memory. Then every line on stdin asks for one timed run. Kinds of steps, in
Hugging Face's Llama on random tokens:

    pretrain: AdamW, clipping. head_scale: frozen model, one trained scalar per head multiplied
        into q. evaluate: loss by position, and with `entropy` the entropy of every attention row,
        from the weights of eager attention.
    decode: greedy, `new_tokens` after prompts of random tokens, with a static cache; on a GPU with
        weights in `dtype` and a compiled step, as `transformers` does by itself.
    on, dtype: the device ('cpu', 'cuda'), and what autocast computes in ('float32': no autocast).
    remat: whether layers are computed again in the backward pass. compiled: whether loss and
        gradients without the entropy go through torch.compile.

Kinds of evaluations, in `transformers`, of 'model', a Hugging Face directory, on 'inputs', a JSON
file with 'rows' of token ids:

    perplexity: windows one at a time, of which the last 'stride' tokens are scored; the mean loss.
    generate: 'batch' rows at a time (neighbours of one length), at most 'new_tokens' more, greedy
        or with 'beams'; the new ids of every row.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import transformers
from torch import nn
from torch.nn import functional
from transformers import (
    AttentionInterface,
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask
from transformers.models.llama.modeling_llama import eager_attention_forward

from tools.bench import harness

Asked = Mapping[str, Any]
Rows = Sequence[Sequence[int]]


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


def llama(case: Asked, attention: str) -> LlamaForCausalLM:
    shape = case['shape']
    config = LlamaConfig(
        hidden_size=shape['width'],
        intermediate_size=shape['mlp_width'],
        num_hidden_layers=shape['layers'],
        num_attention_heads=shape['heads'],
        num_key_value_heads=shape['kv_heads'],
        vocab_size=shape['vocab_size'],
        max_position_embeddings=case['length'] + case['new_tokens'],
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


def pretrain(case: Asked, blocks: torch.Tensor) -> Callable[[], None]:
    model = llama(case, 'sdpa').train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True
    )
    losses_of = torch.compile(losses) if case['compiled'] else losses

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        losses_of(model, blocks).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def head_scale(case: Asked, blocks: torch.Tensor) -> Callable[[], None]:
    model = llama(case, 'head_scale').train().requires_grad_(False)
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


def evaluate(case: Asked, blocks: torch.Tensor) -> Callable[[], None]:
    model = llama(case, 'entropy' if case['entropy'] else 'sdpa').eval()
    compiled = case['compiled'] and not case['entropy']
    losses_of = torch.compile(losses) if compiled else losses

    @torch.no_grad()
    def run() -> None:
        losses_of(model, blocks)

    return run


def decode(case: Asked, blocks: torch.Tensor) -> Callable[[], None]:
    model = greedy(llama(case, 'sdpa').to(getattr(torch, case['dtype'])))
    model.generation_config.use_cache = True
    prompts = blocks[:, : case['length']]
    options = {'max_new_tokens': case['new_tokens'], 'do_sample': False}

    @torch.inference_mode()
    def run() -> None:
        mask = torch.ones_like(prompts)
        model.generate(prompts, attention_mask=mask, cache_implementation='static', **options)

    return run


def greedy(model: PreTrainedModel) -> PreTrainedModel:
    """The model, whose texts nothing ends but their length."""
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model.eval()


def load(folder: str) -> PreTrainedModel:
    """The model in float32. Nothing ends what it writes, as nothing ends ours."""
    return greedy(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))


def perplexity(model: PreTrainedModel, asked: Asked, rows: Rows) -> Callable[[], float]:
    stride = asked['stride']
    windows = torch.tensor(rows)

    @torch.inference_mode()
    def run() -> float:
        total = 0.0
        for window in windows:
            output = model(input_ids=window[None], use_cache=False, logits_to_keep=stride + 1)
            total += functional.cross_entropy(output.logits[0, :-1], window[-stride:]).item()
        return total / len(windows)

    return run


def generate(model: PreTrainedModel, asked: Asked, rows: Rows) -> Callable[[], list[list[int]]]:
    size = asked['batch']
    batches = [torch.tensor(rows[i : i + size]) for i in range(0, len(rows), size)]
    options = {
        'max_new_tokens': asked['new_tokens'],
        'num_beams': asked['beams'],
        'do_sample': False,
    }

    @torch.inference_mode()
    def run() -> list[list[int]]:
        made: list[list[int]] = []
        for batch in batches:
            ids = model.generate(batch, attention_mask=torch.ones_like(batch), **options)
            made += ids[:, batch.shape[1] :].tolist()
        return made

    return run


STEPS: Mapping[str, Callable[[Asked, torch.Tensor], Callable[[], None]]] = {
    'pretrain': pretrain,
    'head_scale': head_scale,
    'evaluate': evaluate,
    'decode': decode,
}
EVALUATIONS: Mapping[str, Callable[[PreTrainedModel, Asked, Rows], Callable[[], Any]]] = {
    'perplexity': perplexity,
    'generate': generate,
}


def prepare(asked: Asked) -> Callable[[], Any]:
    """Function that does what was asked once a call; its result is JSON-able."""
    if asked['kind'] in EVALUATIONS:
        rows = json.loads(pathlib.Path(asked['inputs']).read_text())['rows']
        return EVALUATIONS[asked['kind']](load(asked['model']), asked, rows)
    torch.manual_seed(0)
    shape = asked['batch'], asked['length'] + 1
    blocks = torch.randint(asked['shape']['vocab_size'], shape, device=asked['on'])
    step = STEPS[asked['kind']](asked, blocks)

    def run() -> None:
        step()
        if asked['on'] == 'cuda':
            torch.cuda.synchronize()

    return run


def main() -> None:
    run = prepare(json.loads(sys.argv[1]))
    results: list[Any] = []
    start = time.perf_counter()
    memory = harness.peak_above_base(lambda: results.append(run()))
    say(
        versions=f'torch {torch.__version__}, transformers {transformers.__version__}',
        result=results[0],
        first_seconds=time.perf_counter() - start,
        memory_mib=memory,
    )
    for _ in sys.stdin:
        cpu = time.process_time()
        taken = harness.seconds(run)
        say(seconds=taken, cpu_seconds=time.process_time() - cpu)


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == '__main__':
    main()
