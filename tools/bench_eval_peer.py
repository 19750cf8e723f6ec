"""PyTorch peer of bench_eval.py: the same evaluations in PyTorch and `transformers`.

asked: {'kind', 'model': a Hugging Face directory, 'inputs': a JSON file with 'rows', token ids
each, ...}. Kinds:

    perplexity: windows one at a time, of which the last 'stride' tokens are scored; the mean loss.
    generate: 'batch' rows at a time (neighbours of one length), at most 'new_tokens' more, greedy
        or with 'beams'; the new ids of every row.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(
    0, os.path.dirname(os.path.abspath(__file__))
)  # this project may be none of its own

import json
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import _peer
import torch
import transformers
from torch.nn import functional
from transformers import AutoModelForCausalLM, PreTrainedModel

Rows = Sequence[Sequence[int]]


def load(folder: str) -> PreTrainedModel:
    """The model in float32. Nothing ends what it writes, as nothing ends ours."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


def perplexity(model: PreTrainedModel, asked: Mapping[str, Any], rows: Rows) -> Callable[[], float]:
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


def generate(
    model: PreTrainedModel, asked: Mapping[str, Any], rows: Rows
) -> Callable[[], list[list[int]]]:
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


KINDS: Mapping[str, Callable[..., Callable[[], Any]]] = {
    'perplexity': perplexity,
    'generate': generate,
}


def prepare(asked: Mapping[str, Any]) -> Callable[[], Any]:
    """Function that runs the requested evaluation once a call."""
    rows = json.loads(pathlib.Path(asked['inputs']).read_text())['rows']
    return KINDS[asked['kind']](load(asked['model']), asked, rows)


def main() -> None:
    versions = f'torch {torch.__version__}, transformers {transformers.__version__}'
    _peer.serve(prepare(json.loads(sys.argv[1])), versions)


if __name__ == '__main__':
    main()
