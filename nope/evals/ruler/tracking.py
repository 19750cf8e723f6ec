"""Variable tracking: a chain of assignments between lines of noise, whose variables are asked for.

The prompt begins with an example of its own, in new names each time.
"""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Iterator

import numpy as np

from nope.evals.answers import Sample
from nope.evals.ruler import fitting
from nope.evals.ruler.fitting import Drawn, PromptSource, Request
from nope.evals.ruler.needles import NOISE

QUESTION = (
    'Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n'
    '{context}\n'
    'Question: Find all variables that are assigned the value {query} in the text above. '
    'Answer: According to the chain(s) of variable assignment in the text above, {count} variables '
    'are assigned the value {query}, they are: '
)
EXAMPLE_LENGTH = 500  # tokens
EXAMPLE_VALUE = '12345'
EXAMPLE_STEP = 5


class Tracking:
    """The task. A chain of four hops has five variables of five letters."""

    hops = 4
    budget = 30
    metric = 'all'
    opening = ' Answer:'
    needs_words = False
    files = ()

    def samples(self, request: Request) -> Iterator[Sample]:
        stream = random.Random(request.seed)
        example = _example(_ShortChain(self.hops, stream), request)
        step = 5 if request.length < fitting.SHORT else 10
        source = _NamedChain(self.hops, stream, request.seed, step, example, request.count(example))
        return fitting.samples(source, request, self.budget)


def _example(source: _ShortChain, request: Request) -> str:
    """The example and its answer. Where none fits EXAMPLE_LENGTH tokens it is the smallest; RULER
    makes none there, and never ends."""
    asked = Request(
        request.count, EXAMPLE_LENGTH, request.seed, request.vocabulary, request.corpora
    )
    size = fitting.fitting_size(source, asked, EXAMPLE_LENGTH)
    drawn = source.draw(0, size)
    while request.count(drawn.text) > EXAMPLE_LENGTH and size > source.step:
        size = max(size - source.step, source.least)
        drawn = source.draw(0, size)
    return f'{drawn.text} {" ".join(drawn.answers)}\n'


class _Chain(PromptSource):
    """Draws a chain in lines of noise, as many as the size says."""

    letters = 5

    def __init__(self, hops: int, stream: random.Random, step: int) -> None:
        self._hops = hops
        self._stream = stream
        self.step = step
        self.least = hops + 1

    def trial(self, size: int) -> str:
        return self._drawn(size).text

    def _value(self) -> str:
        return EXAMPLE_VALUE

    def _drawn(self, size: int) -> Drawn:
        found = [self._name(self.letters) for _ in range(self._hops + 1)]
        while len(set(found)) <= self._hops:
            found.append(self._name(self.letters))
        names, value = list(dict.fromkeys(found)), self._value()
        chain = [f'VAR {names[0]} = {value}']
        chain += [f'VAR {new} = VAR {old} ' for old, new in itertools.pairwise(names)]
        lines = [NOISE] * size
        places = sorted(self._stream.sample(range(size), len(chain)))
        for moved, (place, line) in enumerate(zip(places, chain, strict=True)):
            lines.insert(place + moved, line)
        context = '\n'.join(lines).replace('. \n', '.\n')
        text = QUESTION.format(context=context, query=value, count=len(names))
        return Drawn(text, tuple(names))

    def _name(self, letters: int) -> str:
        return ''.join(self._stream.choices(string.ascii_uppercase, k=letters))


class _ShortChain(_Chain):
    letters = 3

    def __init__(self, hops: int, stream: random.Random) -> None:
        super().__init__(hops, stream, EXAMPLE_STEP)

    def draw(self, index: int, size: int) -> Drawn:
        return self._drawn(size)


class _NamedChain(_Chain):
    def __init__(
        self, hops: int, stream: random.Random, seed: int, step: int, example: str, tokens: int
    ) -> None:
        super().__init__(hops, stream, step)
        self._example = example
        self._values = np.random.RandomState(seed)
        self.example = tokens

    def draw(self, index: int, size: int) -> Drawn:
        drawn, text = self._drawn(size), self._example
        for name in self._example.split()[-self._hops - 1 :]:
            text = text.replace(name, self._name(len(name)))
        text = text.replace(EXAMPLE_VALUE, self._value())
        return Drawn(f'{text}\n{drawn.text}', drawn.answers)

    def _value(self) -> str:
        return str(self._values.randint(10000, 99999))
