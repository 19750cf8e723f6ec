"""Hybrids and other blocks in use: cached generation and scores of shared prefixes of imported
models are those of stock `transformers` with the same weights."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from nope.evals.generation import Generator, Options
from nope.model import ModelConfig
from nope.variables import Variables
from tests import tiny
from tests.interop import stock

T, PROMPT, NEW_TOKENS = 96, 48, 32
TOKENS = tiny.tokens(2, T, vocab_size=stock.VOCAB)
FULL, SLIDING = 'full_attention', 'sliding_attention'
GROWING = {'llama_4_scaling_beta': 0.5, 'original_max_position_embeddings': 32}
# One of each kind of block, with layers of several kinds where the family has them.
CASES: dict[str, dict[str, Any]] = {
    'cohere2': {},
    'olmo2': {},
    'olmo3': {},
    'exaone4': {},
    'ministral3': {'rope_parameters': {'rope_type': 'default', 'rope_theta': 500.0, **GROWING}},
    'gemma3_text': {'layer_types': [SLIDING, FULL, SLIDING, SLIDING]},
    'gemma4_text': {},
}
Case = tuple[PreTrainedModel, ModelConfig, Variables]


@pytest.fixture(scope='module')
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """Stock's model of a family, and ours of its folder with the attention that is used."""

    @functools.cache
    def made(family: str) -> Case:
        folder: pathlib.Path = tmp_path_factory.mktemp(family)
        stock.save(stock.make(family, **CASES[family]), folder)
        described, variables = stock.ours(folder)
        model = dataclasses.replace(described.model, attention=None)
        return stock.restore(folder), model, variables

    return made


def generator(model: ModelConfig, variables: Variables) -> Generator:
    return Generator(model, variables, tiny.mesh(), batch_tokens=10_000)


@pytest.mark.parametrize('family', CASES)
def test_generation_with_a_cache_continues_as_stock_does(
    case: Callable[[str], Case], family: str
) -> None:
    """Prompts of two lengths in one batch, beyond the window."""
    theirs, model, variables = case(family)
    prompts = [TOKENS[0, :PROMPT], TOKENS[1, : PROMPT - 7]]
    made = generator(model, variables).generate(prompts, Options(NEW_TOKENS))
    for prompt, found in zip(prompts, made, strict=True):
        expected = stock.generate(theirs, prompt[None], NEW_TOKENS)[0, len(prompt) :]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('family', ['cohere2', 'gemma4_text'])
def test_scores_behind_a_shared_prefix_are_those_of_stock(
    case: Callable[[str], Case], family: str
) -> None:
    theirs, model, variables = case(family)
    continuations = [TOKENS[0, PROMPT:], TOKENS[1, PROMPT:]]
    scores = generator(model, variables).score([TOKENS[0, :PROMPT]] * 2, continuations)
    whole_BT = np.stack([np.concatenate([TOKENS[0, :PROMPT], c]) for c in continuations])
    logits_BTV = torch.from_numpy(stock.logits(theirs, whole_BT))[:, PROMPT - 1 : -1]
    log_probs_BTV = torch.log_softmax(logits_BTV, -1).numpy()
    for row, continuation in enumerate(continuations):
        expected = log_probs_BTV[row, np.arange(len(continuation)), continuation]
        np.testing.assert_allclose(scores[row].log_probs, expected, rtol=0, atol=2e-4)
