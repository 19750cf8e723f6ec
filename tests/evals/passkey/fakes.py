"""Tokenizers that cut text in different ways, and a model that reads what it is asked."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nope.data import Tokenizer, load_tokenizer
from nope.data.templates import PAPER
from nope.evals.generation import Options
from tests.data.words import sentencepieces

BYTES = load_tokenizer('bytes')


@dataclasses.dataclass
class Pieces:
    """A tokenizer that numbers the pieces into which `cut` divides a text, as it meets them."""

    cut: Callable[[str], list[str]]
    bos_id: int | None = 1
    prefix: tuple[int, ...] = ()
    eos_id: int = 2
    stop_ids: tuple[int, ...] = (2,)
    fingerprint: str = 'pieces'
    vocab_size: int = 1_000

    def __post_init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def encode(self, text: Any) -> np.ndarray:
        ids = [self.numbers.setdefault(piece, len(self.numbers) + 3) for piece in self.cut(text)]
        return np.array(ids, np.int32)

    def decode(self, ids: Any) -> str:
        pieces = {number: piece for piece, number in self.numbers.items()}
        return ''.join(pieces.get(int(i), '') for i in ids)


def llama_pieces(text: str) -> list[str]:
    """As Llama's tokenizer cuts the paper's prompt: a space in front of every text, words with
    the space before them, single digits, and two words in two."""
    return re.findall(r' ir|relevant| memor|ize| ?[A-Za-z]+|[^A-Za-z]', ' ' + text)


def sentencepiece_tokenizer(folder: pathlib.Path) -> Tokenizer:
    """Of Llama's options: a space in front of every text, single digits, bytes for the unknown."""
    model = sentencepieces(
        [PAPER.prompt(str(key), 1, 1) for key in range(10_000, 10_100)],
        vocab_size=360,
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name='identity',
        remove_extra_whitespaces=False,
    )
    (folder / 'tokenizer.model').write_bytes(model)
    return load_tokenizer(str(folder / 'tokenizer.model'))


class Score(NamedTuple):
    log_probs: np.ndarray
    greedy: np.ndarray


class Model:
    """Answers by `answer(prompt text) -> text`, and keeps what it was asked."""

    def __init__(self, tokenizer: Tokenizer, answer: Callable[[str], str]) -> None:
        self.tokenizer = tokenizer
        self.answer = answer
        self.asked: list[np.ndarray] = []
        self.calls = 0
        self.options: Options | None = None

    def generate(self, prompts: Sequence[np.ndarray], options: Options) -> list[np.ndarray]:
        self.calls += 1
        self.asked += prompts
        self.options = options
        return [self._ids(prompt)[: options.new_tokens] for prompt in prompts]

    def score(
        self, prompts: Sequence[np.ndarray], continuations: Sequence[np.ndarray], written: bool
    ) -> list[Score]:
        assert written  # as decoding would write the answers
        self.calls += 1
        self.asked += prompts
        scores = []
        for prompt, continuation in zip(prompts, continuations, strict=True):
            greedy = self._ids(prompt)[: len(continuation)] == continuation
            scores.append(Score(np.log(np.where(greedy, 0.9, 0.1)).astype(np.float32), greedy))
        return scores

    def _ids(self, prompt: np.ndarray) -> np.ndarray:
        return self.tokenizer.encode(self.answer(self.tokenizer.decode(prompt)))
