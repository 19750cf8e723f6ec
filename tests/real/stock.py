"""Numbers of stock `transformers` and lm_eval on a real model, in float32 with eager attention.

    NOPE_REAL_MODELS=FOLDER python -m tests.real.stock

writes smollm2.json and gemma3.json beside this file, of the models that the folder has.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.real.models import (
    CHAPTER,
    CHATS,
    NAMES,
    NEW_TOKENS,
    PROMPTS,
    SHORT,
    STRIDE,
    TASKS,
    WINDOW,
    WINDOWS,
    directory,
    write_tasks,
)


def measured(path: pathlib.Path) -> dict[str, Any]:
    """The numbers of a directory, rounded."""
    model = opened(path)
    tokenizer = AutoTokenizer.from_pretrained(path)
    prefix = tokenizer('').input_ids  # BOS, or nothing
    ids = tokenizer(CHAPTER.read_text(), add_special_tokens=False).input_ids

    def window(begin: int, end: int) -> list[int]:
        return [*prefix, *ids[begin + len(prefix) : end]]

    losses, entropies = by_position(model, window(0, WINDOW + 1))
    sliding = {
        size: {
            end: _rounded(by_position(model, window(end - size, end))[0][-STRIDE:].mean())
            for end in range(size, len(ids), STRIDE)
        }
        for size in WINDOWS
    }
    # lm_eval puts BOS before rolling texts, and so does such a tokenizer: two, unless it is told.
    once = {'add_bos_token': False} if prefix else {}
    chats = []
    for chat in CHATS if tokenizer.chat_template else ():
        text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        asked = tokenizer.apply_chat_template(chat, add_generation_prompt=True).input_ids
        chats.append({'text': text, 'ids': asked, 'answer': greedy(model, asked)})
    return {
        'loss': _rounded(losses),
        'entropy': _rounded(entropies.mean(-1)),
        'sliding': sliding,
        'prompts': [tokenizer(text).input_ids for text in PROMPTS],
        'continuations': [greedy(model, tokenizer(text).input_ids) for text in PROMPTS],
        'chats': chats,
        'harness': harness(path, TASKS) | harness(path, ['real_pages'], **once),
        'short': harness(path, ['real_pages'], max_length=SHORT, **once),
    }


def opened(path: pathlib.Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, attn_implementation='eager'
    )


def by_position(model: Any, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Loss, nats [T], and attention entropy, nats [layer, head, T], of T + 1 ids."""
    tokens = torch.tensor([ids])
    with torch.no_grad():
        found = model(tokens[:, :-1], output_attentions=True)
    # A float32 sum over 262,144 pieces would be 2e-5 too small.
    logits = found.logits[0].double()
    losses = torch.nn.functional.cross_entropy(logits, tokens[0, 1:], reduction='none')
    rows = torch.cat(found.attentions).double()
    return losses.numpy(), torch.special.entr(rows).sum(-1).numpy()


def greedy(model: Any, ids: list[int]) -> list[int]:
    """What follows, without the token that ends it. AssertionError where two tokens are so near to
    each other that rounding would choose."""
    end = model.generation_config.eos_token_id
    found = model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        do_sample=False,
        max_new_tokens=NEW_TOKENS,
        output_logits=True,
        return_dict_in_generate=True,
    )
    best = torch.cat(found.logits).topk(2).values
    assert (best[:, 0] - best[:, 1]).min() > 1e-3
    return [i for i in found.sequences[0, len(ids) :].tolist() if i != end]


def harness(
    path: pathlib.Path, tasks: Iterable[str], **options: Any
) -> dict[str, dict[str, float]]:
    """Scores by task and metric."""
    model = HFLM(str(path), dtype='float32', device='cpu', batch_size=1, **options)
    with tempfile.TemporaryDirectory() as folder:
        manager = TaskManager(
            include_path=str(write_tasks(pathlib.Path(folder))), include_defaults=False
        )
        found = simple_evaluate(model, tasks=list(tasks), task_manager=manager, bootstrap_iters=0)
    return {
        task: {
            metric: round(value, 6)
            for metric, value in scores.items()
            if metric.endswith(',none') and 'stderr' not in metric
        }
        for task, scores in found['results'].items()
    }


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, np.float64), 5).tolist()


def main() -> None:
    for name in NAMES:
        if (path := directory(name)) is None:
            print(f'{name} is not there', file=sys.stderr)
            continue
        lines = (f' "{key}": {json.dumps(value)}' for key, value in measured(path).items())
        text = '{\n' + ',\n'.join(lines) + '\n}\n'
        pathlib.Path(__file__).with_name(f'{name}.json').write_text(text)


if __name__ == '__main__':
    main()
