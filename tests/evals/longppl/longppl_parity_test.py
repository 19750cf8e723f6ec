"""LongPPL of an imported model is that of two direct passes through stock `transformers`."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import torch

from nope.data.documents import Documents
from nope.data.tokenizers import ByteTokenizer
from nope.evals import longppl
from nope.evals.generation import Generator
from nope.evals.longppl import Rule
from nope.evals.samples import SampleLog
from tests import tiny
from tests.data.documents import whole
from tests.interop import stock

VOCAB = 258  # of the byte tokenizer, with its marks
# A random model prefers no token that it has read: the thresholds are below and above its noise.
RULE = Rule(short=24, stride=10, gain=0.05, ceiling=8.0)
LENGTHS, BUDGET = (48, 96), 96 * 3


def token_losses(model: Any, tokens: np.ndarray) -> np.ndarray:
    """Of every token but the first."""
    ids = torch.from_numpy(tokens.astype(np.int64))
    with torch.no_grad():
        logits = model(ids[None]).logits[0, :-1]
    return torch.nn.functional.cross_entropy(logits, ids[1:], reduction='none').double().numpy()


def stock_key_losses(model: Any, tokens: np.ndarray) -> list[float]:
    """One pass over all tokens, and one for each short context, by itself."""
    full = token_losses(model, tokens)
    found = []
    for begin in range(0, len(tokens) - RULE.short, RULE.stride):
        window = tokens[begin : begin + RULE.short + RULE.stride].copy()
        window[0] = tokens[0]  # a short context begins with BOS too
        short = token_losses(model, window)
        for t in range(begin + RULE.short, begin + len(window)):
            gain = short[t - begin - 1] - full[t - 1]
            if gain > RULE.gain and full[t - 1] < RULE.ceiling:
                found.append(full[t - 1])
    return found


def test_longppl_is_that_of_stock(books: Documents, tmp_path: pathlib.Path) -> None:
    model = stock.make('llama', vocab_size=VOCAB)
    described, variables = stock.ours(stock.save(model, tmp_path / 'model'))
    generator = Generator(described.model, variables, tiny.mesh(), batch_tokens=384)
    found = longppl.run(
        generator,
        ByteTokenizer(),
        books,
        LENGTHS,
        RULE,
        budget=BUDGET,
        log=SampleLog(tmp_path / 'samples.jsonl'),
    )
    for index, length in enumerate(LENGTHS):
        taken = [d[:length] for d in whole(books) if len(d) >= length][: BUDGET // length]
        keys = [loss for tokens in taken for loss in stock_key_losses(model, tokens)]
        losses = np.concatenate([token_losses(model, tokens) for tokens in taken])
        assert found['documents'][index] == len(taken) == 3
        assert found['key_tokens'][index] == len(keys) > 10
        np.testing.assert_allclose(found['longppl'][index], np.exp(np.mean(keys)), rtol=1e-5)
        np.testing.assert_allclose(found['perplexity'][index], np.exp(losses.mean()), rtol=1e-5)
