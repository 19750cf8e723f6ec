"""Greedy continuations and beam search of imported models are those of stock `transformers`."""

from __future__ import annotations

import collections
import dataclasses
import functools
import pathlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from nope.evals.generation import Generator, Options
from tests import tiny
from tests.interop import stock

NEW = 16
LENGTHS = np.random.default_rng(0).integers(1, 48, 24)
PROMPTS = [tiny.tokens(1, int(n), i, stock.VOCAB)[0] for i, n in enumerate(LENGTHS)]
FULL, SLIDING = 'full_attention', 'sliding_attention'
GROWING = {
    'rope_type': 'default',
    'rope_theta': 500.0,
    'llama_4_scaling_beta': 0.5,
    'original_max_position_embeddings': 32,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    'llama': ('llama', {}),
    'mistral': ('mistral', {'sliding_window': 12}),
    'qwen3': ('qwen3', {}),
    'smollm3': ('smollm3', {}),
    'bloom': ('bloom', {}),
    'mpt': ('mpt', {}),
    # One of each kind of block, with layers of several kinds where the family has them.
    'cohere2': ('cohere2', {}),
    'olmo3': ('olmo3', {}),
    'exaone4': ('exaone4', {}),
    'ministral3': ('ministral3', {'rope_parameters': GROWING}),
    'gemma3': ('gemma3_text', {'layer_types': [SLIDING, FULL, SLIDING, SLIDING]}),
    'gemma4': ('gemma4_text', {}),
}
# length_penalty, early_stopping, least
SEARCHES: list[tuple[str, float, bool | str, int]] = [
    ('llama', 1.0, False, 0),
    ('mistral', 2.0, 'never', 0),
    ('llama', 0.5, True, 4),
    ('bloom', 0.5, 'never', 3),
]
MORE_SEARCHES: list[tuple[str, float, bool | str, int]] = [
    ('llama', 0.5, True, 0),
    ('qwen3', 1.0, True, 4),
    ('smollm3', 0.0, False, 3),
    ('bloom', 0.5, 'never', 0),
    ('mpt', 1.0, False, 2),
]


class Case(NamedTuple):
    """A model of stock, the same one of ours, and ids that end a continuation."""

    theirs: PreTrainedModel
    ours: Generator
    stop_ids: tuple[int, ...]


@pytest.fixture(scope='module')
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """The ids are those that come most often in the middle of the model's free continuations."""

    @functools.cache
    def made(name: str) -> Case:
        family, changes = MODELS[name]
        folder: pathlib.Path = stock.save(
            stock.make(family, **changes), tmp_path_factory.mktemp(family)
        )
        described, variables = stock.ours(folder)
        model = dataclasses.replace(described.model, attention=None)
        # All prompts are one batch, also with five beams.
        ours = Generator(model, variables, tiny.mesh(), batch_tokens=5 * 64 * len(PROMPTS))
        theirs = stock.restore(folder)
        free = [ids[3:12] for ids in generated(theirs, ())]
        counts = collections.Counter(np.concatenate(free).tolist())
        return Case(theirs, ours, tuple(token for token, _ in counts.most_common(4)))

    return made


def generated(model: PreTrainedModel, stop_ids: Collection[int], **options: Any) -> list[list[int]]:
    """What stock continues all prompts with, in one batch that is padded on the left."""
    longest = max(map(len, PROMPTS))
    ids = np.stack([np.pad(p, (longest - len(p), 0)) for p in PROMPTS]).astype(np.int64)
    mask = np.stack([np.arange(longest) >= longest - len(p) for p in PROMPTS]).astype(np.int64)
    model.generation_config.eos_token_id = None
    with torch.no_grad():
        whole = model.generate(
            torch.from_numpy(ids),
            attention_mask=torch.from_numpy(mask),
            do_sample=False,
            max_new_tokens=NEW,
            pad_token_id=0,
            eos_token_id=[*stop_ids] or None,
            **options,
        )
    return [cut(row, stop_ids) for row in whole[:, longest:].tolist()]


def cut(row: list[int], stop_ids: Collection[int]) -> list[int]:
    """Up to the first stop id."""
    ends = [i for i, token in enumerate(row) if token in stop_ids]
    return row[: ends[0]] if ends else row


def assert_same(found: Sequence[np.ndarray], expected: Sequence[list[int]]) -> None:
    """Every continuation; and not all end at one place."""
    assert [ids.tolist() for ids in found] == expected
    assert len({len(ids) for ids in expected}) > 1


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow if name in ('qwen3', 'mpt') else ())
    for name in MODELS
])  # fmt: skip
def test_the_likeliest_tokens_are_those_of_stock(case: Callable[[str], Case], name: str) -> None:
    theirs, ours, stop_ids = case(name)
    found = ours.generate(PROMPTS, Options(NEW, stop_ids=stop_ids))
    assert_same(found, generated(theirs, stop_ids))


@pytest.mark.parametrize(
    ('name', 'length_penalty', 'early_stopping', 'least'),
    [*SEARCHES, *(pytest.param(*search, marks=pytest.mark.slow) for search in MORE_SEARCHES)],
)
def test_five_beams_find_what_stock_finds(
    case: Callable[[str], Case],
    name: str,
    length_penalty: float,
    early_stopping: bool | str,
    least: int,
) -> None:
    theirs, ours, stop_ids = case(name)
    how = {'length_penalty': length_penalty, 'early_stopping': early_stopping}
    options = Options(NEW, least, stop_ids, beams=5, **how)  # type: ignore[arg-type]
    expected = generated(theirs, stop_ids, num_beams=5, min_new_tokens=least or None, **how)
    assert_same(ours.generate(PROMPTS, options), expected)
