"""Models written for stock `transformers`: it computes the same, and they are read back."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nope.interop import Described, fold
from nope.model import LayerKind, ModelConfig
from nope.model.lam import Law, LogLength
from nope.positions import NoPE, RoPE
from tests import tiny
from tests.interop import stock
from tests.interop.imported import (
    NEW_TOKENS,
    PROMPT,
    TOKENS,
    TOLERANCE,
    Imported,
    assert_equal_models,
    assert_same_logits,
    exported,
    lam_between,
    read,
)
from tests.interop.stock import LONGEST, TRAINED, VOCAB
from tests.interop.stock_cases import ALIKE, CASES, WINDOW, follows

# All but those with a norm of each head.
UNFOLDABLE = ('qwen3', 'exaone4', 'gemma3_text', 'gemma4_text', 'gemma4_unified_text')
FOLDABLE = [name for name in CASES if CASES[name][0] not in UNFOLDABLE]
OTHERS = ('bloom', 'mpt', 'nemotron_h', 'granitemoehybrid')
LLAMA_SHAPED = [name for name in CASES if CASES[name][0] not in OTHERS]


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ()) for name in FOLDABLE
])  # fmt: skip
def test_stock_computes_the_same_with_lambda_folded(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    found = imported(name)
    found = found.with_lam(lam_between(1, 2, found.model))
    folder = exported(tmp_path / 'out', found)
    theirs = stock.restore(folder)
    assert_same_logits(theirs, found)
    neutral = imported(name).logits(TOKENS)
    assert np.abs(found.logits(TOKENS) - neutral).max() > 1
    again = read(folder)
    assert again.model == found.model
    tiny.assert_same(again.variables, fold(found.model, found.variables)[1])


def with_law(found: Imported, law: Law) -> Imported:
    """The same parameters with lambda under another law."""
    model = dataclasses.replace(found.model, lam=law)
    return dataclasses.replace(found, described=found.described._replace(model=model))


@pytest.mark.parametrize('name', ['llama', 'dynamic', 'longrope', 'bloom'])
def test_a_lambda_that_follows_the_length_is_folded_at_one(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    """Below that length too, the written model has the lambda of that length."""
    source = imported(name)
    found = with_law(source, LogLength(TRAINED))
    found = found.with_lam(lam_between(0, 0.5, found.model))
    theirs = stock.restore(exported(tmp_path / 'out', found, length=LONGEST))
    expected = stock.logits(theirs, TOKENS)
    np.testing.assert_allclose(found.logits(TOKENS), expected, rtol=0, atol=TOLERANCE)
    assert np.abs(source.logits(TOKENS) - expected).max() > 1
    if not follows(name):
        assert_same_logits(theirs, found, length=LONGEST)


def test_a_lambda_of_layers_without_position_alone(
    imported: Callable[[str], Imported], tmp_path
) -> None:
    source = imported('smollm3')
    model = dataclasses.replace(source.model, lam_layers='nope')
    found = dataclasses.replace(source, described=source.described._replace(model=model))
    found = found.with_lam(lam_between(1, 2, model))
    assert_same_logits(stock.restore(exported(tmp_path / 'out', found)), found)


def of_ours(model: ModelConfig) -> Imported:
    """A model that no other library has seen."""
    return Imported(pathlib.Path(), Described(model, TRAINED), tiny.variables(model))


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'tied_head': True, 'qkv_bias': True, 'output_bias': True, 'mlp_bias': True},
        {'pattern': (LayerKind(NoPE(), WINDOW), LayerKind(RoPE()))},
    ],
    ids=['plain', 'biases, tied', 'mixed'],
)
def test_models_without_position_encoding_are_written_for_stock(
    tmp_path, changes: dict[str, Any]
) -> None:
    model = tiny.model(width=128, head_dim=16, layers=3, vocab_size=VOCAB, **changes)
    found = of_ours(model)
    found = found.with_lam(lam_between(1, 2, model))
    folder = exported(tmp_path / 'out', found)
    assert json.loads((folder / 'config.json').read_text())['model_type'] == 'smollm3'
    theirs = stock.restore(folder)
    assert_same_logits(theirs, found)
    expected = stock.generate(theirs, PROMPT, NEW_TOKENS)
    actual = stock.greedy(model, found.variables, PROMPT, NEW_TOKENS)
    np.testing.assert_array_equal(actual, expected)
    assert read(folder).model == model


@pytest.mark.parametrize('name', CASES)
def test_what_is_written_is_read_back(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    found = imported(name)
    again = read(exported(tmp_path / 'out', found))
    assert again.described == found.described
    assert_equal_models(again, found)
    if name in LLAMA_SHAPED:
        found = found.with_lam(lam_between(1, 2, found.model))
        assert_equal_models(read(exported(tmp_path / 'scaled', found, lam='scale_param')), found)


@pytest.mark.parametrize('name', ['bloom', 'mpt'])
def test_scales_are_tensors_of_llamas_alone(
    imported: Callable[[str], Imported], tmp_path, name: str
) -> None:
    with pytest.raises(ValueError, match="lam='scale_param' is a tensor of Llama-shaped"):
        exported(tmp_path / 'out', imported(name), lam='scale_param')
    assert not list(tmp_path.iterdir())
