"""Frequent words: made-up words with a zeta distribution, whose three most frequent are asked for.

The most frequent of all is written as dots, which the question says to ignore.
"""

from __future__ import annotations

import itertools
import math
import random
import string
from collections.abc import Iterator

import numpy as np

from nope.evals.answers import Sample
from nope.evals.ruler.fitting import Request

QUESTION = (
    'Read the following coded text and track the frequency of each coded word. '
    'Find the three most frequently appeared coded words. {context}\n'
    "Question: Do not provide any explanation. Please ignore the dots '....'. "
    'What are the three most frequently appeared words in the above coded text? '
    'Answer: According to the coded text above, the three most frequently appeared words are:'
)
LETTERS = 6
TOKENS_A_WORD = 50  # of the room, for each word of the vocabulary
STEPS = 32  # shares of the room by which the number of words changes
ASKED = 3


class FrequentWords:
    """The task. Of n words, the one of rank k is there n k^-2 / zeta(2) times."""

    alpha = 2.0
    zeta = math.pi**2 / 6
    budget = 50
    metric = 'all'
    opening = ' Answer:'
    needs_words = False
    files = ()

    def samples(self, request: Request) -> Iterator[Sample]:
        room = request.length - self.budget
        words = room // TOKENS_A_WORD
        if words <= ASKED:
            raise ValueError(
                f'length is {request.length} tokens; {ASKED} words to ask for take '
                f'{(ASKED + 1) * TOKENS_A_WORD + self.budget}'
            )
        stream = random.Random(request.seed)
        coded, step = _coded(stream, words, request.seed), room // STEPS
        sizes = itertools.count(room // LETTERS, step)
        long = next(s for s in sizes if request.count(self._text(coded, s, request)) >= room)
        while True:
            yield self._fitting(_coded(stream, words, request.seed), request, room, long - step)

    def _fitting(self, coded: list[str], request: Request, room: int, size: int) -> Sample:
        while size > 0:
            counts = self._counts(coded, size)
            text = self._text(coded, size, request)
            tokens = request.count(text)
            if tokens <= room and counts[ASKED]:
                return Sample(text, tuple(coded[1 : 1 + ASKED]), tokens)
            size -= room // STEPS
        raise ValueError(
            f'length is {request.length} tokens; a text with {ASKED} coded words, its question '
            'and its answer take more'
        )

    def _counts(self, coded: list[str], size: int) -> list[int]:
        rank = np.arange(1, len(coded) + 1)
        return (size * rank**-self.alpha / self.zeta).astype(int).tolist()

    def _text(self, coded: list[str], size: int, request: Request) -> str:
        counts = self._counts(coded, size)
        words = [word for word, n in zip(coded, counts, strict=True) for _ in range(n)]
        random.Random(request.seed).shuffle(words)
        return QUESTION.format(context=' '.join(words))


def _coded(stream: random.Random, size: int, seed: int) -> list[str]:
    """So many different words by rank, the first as dots."""
    found = [_word(stream) for _ in range(size)]
    while len(set(found)) < size:
        found.append(_word(stream))
    coded = sorted(set(found))
    random.Random(seed).shuffle(coded)
    coded[0] = '...'
    return coded


def _word(stream: random.Random) -> str:
    return ''.join(stream.choices(string.ascii_lowercase, k=LETTERS))
