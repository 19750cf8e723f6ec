"""Needle task: a haystack with hidden strings, and the score of an answer."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nope.data import Tokenizer
from nope.evals.needles.haystack import Haystack


class Hidden(NamedTuple):
    """A haystack, and the strings that a right answer to its question contains."""

    haystack: Haystack
    expected: tuple[str, ...]


class Asked(NamedTuple):
    """A prompt's ids int32, the strings that its answer should contain, and its tokens at most."""

    prompt: np.ndarray
    expected: tuple[str, ...]
    new_tokens: int


@dataclasses.dataclass(frozen=True)
class Task:
    """A needle task.

    new_tokens: an answer's length at most; enough for one in bytes, and the same with every
    tokenizer. hide: draws a haystack whose first needle that matters lies at a depth, a share
    of the filler in 0 .. 1.
    """

    name: str
    new_tokens: int
    hide: Callable[[float, np.random.RandomState], Hidden]

    def build(
        self,
        tokenizer: Tokenizer,
        length: int,
        depth: float,
        rng: np.random.RandomState,
        *,
        filler: str,
        bos: bool,
    ) -> Asked:
        """A prompt of `length` tokens, or as few less as the words of the filler allow.

        ValueError where the prompt is longer without any filler, for a depth outside 0 .. 1,
        and where bos is on and the tokenizer has no BOS.
        """
        haystack, expected = self.hide(depth, rng)
        return Asked(haystack.ids(tokenizer, length, filler, bos), expected, self.new_tokens)

    def score(self, text: str, expected: Sequence[str]) -> float:
        """The share of `expected` that `text` contains, each as a word of its own."""
        found = [re.search(rf'(?<!\w){re.escape(string)}(?!\w)', text) for string in expected]
        return sum(match is not None for match in found) / len(expected)
