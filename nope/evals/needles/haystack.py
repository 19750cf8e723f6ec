"""Needles in filler, cut to a number of tokens."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nope.data import Tokenizer, encode_with_bos

SENTENCE_ENDS = ('.', '!', '?')


class Needle(NamedTuple):
    """A text, and the share of the filler's whole sentences that stand in front of it."""

    depth: float
    text: str


@dataclasses.dataclass(frozen=True)
class Haystack:
    """Prompt without its filler: a task before it, needles inside it, a question after it.

    Needles of the same depth stand in the order given. ValueError for a depth outside 0 .. 1.
    """

    task: str
    needles: tuple[Needle, ...]
    question: str

    def __post_init__(self) -> None:
        for needle in self.needles:
            if not 0 <= needle.depth <= 1:
                raise ValueError(f'depth is {needle.depth}; it must be in 0 .. 1')

    def text(self, filler: str, words: int) -> str:
        """The prompt with the first `words` words of the endlessly repeated filler.

        Needles stand between whole sentences; one that `words` cuts short stands before the
        question. ValueError for a filler without words.
        """
        unit = re.findall(r'\s*\S+', filler)
        if not unit:
            raise ValueError(f'filler is {filler!r}; it must have a word')
        ends = [word.endswith(SENTENCE_ENDS) for word in unit[:-1]] + [True]
        taken = [unit[i % len(unit)] for i in range(words)]
        gaps = [0, *(i + 1 for i in range(words) if ends[i % len(unit)])]
        parts, start = [self.task], 0
        for needle in sorted(self.needles, key=lambda needle: needle.depth):
            gap = gaps[int(needle.depth * (len(gaps) - 1))]
            parts += [*taken[start:gap], needle.text]
            start = gap
        return ''.join([*parts, *taken[start:], self.question])

    def least(self, tokenizer: Tokenizer, filler: str, bos: bool) -> int:
        """Tokens of the prompt without filler."""
        return len(encode_with_bos(tokenizer, self.text(filler, 0), bos))

    def ids(self, tokenizer: Tokenizer, length: int, filler: str, bos: bool) -> np.ndarray:
        """Longest prompt of at most `length` tokens with whole words of filler.

        int32, with BOS, which counts, where bos is on. ValueError where the prompt is longer
        without any filler.
        """

        def prompt(words: int) -> np.ndarray:
            return encode_with_bos(tokenizer, self.text(filler, words), bos)

        least = len(prompt(0))
        if least > length:
            raise ValueError(
                f'length {length} is shorter than a prompt without filler, {least} tokens'
            )
        return prompt(_most(lambda words: len(prompt(words)), length))


def _most(tokens: Callable[[int], int], length: int) -> int:
    """The number of words n <= length with tokens(n) <= length < tokens(n + 1).

    tokens(0) fits. By interpolation: tokens of repeated words are nearly a straight line, which
    takes a handful of tries where bisection would take one for every doubling.
    """
    low, high = 0, length
    low_tokens, high_tokens = tokens(low), tokens(high)
    if high_tokens <= length:
        return high
    while high - low > 1:
        share = (length - low_tokens) / (high_tokens - low_tokens)
        middle = min(max(low + int(share * (high - low)), low + 1), high - 1)
        middle_tokens = tokens(middle)
        if middle_tokens <= length:
            low, low_tokens = middle, middle_tokens
        else:
            high, high_tokens = middle, middle_tokens
    return low
