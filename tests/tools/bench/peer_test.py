"""PyTorch's side of a benchmark does the work that it is timed for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from tools.bench import peer

SHAPE = {'layers': 1, 'width': 32, 'heads': 4, 'kv_heads': 2, 'mlp_width': 64, 'vocab_size': 50}
CASE = {
    **{'kind': 'decode', 'shape': SHAPE, 'length': 9, 'batch': 2, 'entropy': False},
    **{'on': 'cpu', 'dtype': 'float32', 'new_tokens': 4, 'remat': False, 'compiled': False},
}


def test_decoding_reads_the_prompt_once_and_then_a_token_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[tuple[int, ...]] = []
    forward = LlamaForCausalLM.forward

    def noted(self: Any, input_ids: torch.Tensor, **options: Any) -> Any:
        read.append(tuple(input_ids.shape))
        return forward(self, input_ids=input_ids, **options)

    monkeypatch.setattr(LlamaForCausalLM, 'forward', noted)
    peer.prepare(CASE)()
    assert read == [(2, 9), (2, 1), (2, 1), (2, 1)]
