"""Models of stock `transformers` as they are read here, and comparisons of both."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import jax
import numpy as np
from transformers import PreTrainedModel

from nope.interop import Described, Export, save
from nope.model import ModelConfig
from nope.variables import Variables, lam_of, with_lam
from tests import tiny
from tests.interop import stock
from tests.interop.stock import LONGEST, TRAINED, VOCAB
from tests.interop.stock_cases import CASES

TOLERANCE = 2e-4  # absolute, of logits that spread over several units, in float32
# Ascending: stock's dynamic encodings remember the longest sequence that they have seen.
LENGTHS = (1, 24, TRAINED, TRAINED + 1, 96, LONGEST)
TOKENS = tiny.tokens(2, LONGEST, vocab_size=VOCAB)
NEW_TOKENS = 32
PROMPT = TOKENS[:, : TRAINED - 16]  # the continuation goes beyond the length in the config


@dataclasses.dataclass(frozen=True)
class Imported:
    """A stock model's folder, and what is read from it."""

    folder: pathlib.Path
    described: Described
    variables: Variables

    @property
    def model(self) -> ModelConfig:
        return self.described.model

    def logits(self, tokens_BT: np.ndarray, *, length: int | None = None) -> np.ndarray:
        return stock.our_logits(self.model, self.variables, tokens_BT, length=length)

    def with_lam(self, lam_LN: np.ndarray) -> Imported:
        placed_LN = jax.device_put(lam_LN, lam_of(self.variables).sharding)
        return dataclasses.replace(self, variables=with_lam(self.variables, placed_LN))


def read(folder: pathlib.Path, **options: Any) -> Imported:
    return Imported(folder, *stock.ours(folder, **options))


def make(name: str, folder: pathlib.Path) -> Imported:
    """The case of that name, saved into `folder` and read from it."""
    family, changes = CASES[name]
    return read(stock.save(stock.make(family, **changes), folder))


def lam_between(low: float, high: float, model: ModelConfig) -> np.ndarray:
    """A coefficient for every layer and head, [L, N] float32."""
    shape = model.attention_layers, model.heads
    return np.random.default_rng(1).uniform(low, high, shape).astype(np.float32)


def assert_same_logits(theirs: PreTrainedModel, found: Imported, **options: Any) -> None:
    """At every length."""
    for length in LENGTHS:
        tokens_BT = TOKENS[:, :length]
        expected = stock.logits(theirs, tokens_BT)
        assert expected.std() > 1
        actual = found.logits(tokens_BT, **options)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE, err_msg=str(length))


def assert_equal_models(actual: Imported, expected: Imported) -> None:
    """The same config, and the same variables bit for bit."""
    assert actual.model == expected.model
    tiny.assert_same(actual.variables, expected.variables)


def exported(folder: pathlib.Path, found: Imported, **options: Any) -> pathlib.Path:
    save(folder, found.variables, found.described, export=Export(**options))
    return folder
