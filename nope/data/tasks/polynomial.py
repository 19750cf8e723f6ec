"""Polynomial evaluation modulo 10."""

from __future__ import annotations

import dataclasses
import re
from typing import ClassVar

import numpy as np

from nope.data.tasks import answers, numbers, scratchpad
from nope.data.tasks.base import Bin, Example, SteppedTask, matched, no_source
from nope.data.tasks.numbers import PATTERN, read, spaced
from nope.data.tasks.scratchpad import SolutionStep

MODULUS = 10
_SOURCE = re.compile(rf'Evaluate at x = ({PATTERN}) in (.+) \? ')
_TERM = re.compile(rf'({PATTERN}) \* x \*\* ({PATTERN})')


@dataclasses.dataclass(frozen=True)
class Polynomial(SteppedTask):
    """Value modulo 10 of a polynomial of `length` terms. Coefficients are -3 to 3 and degrees 0 to
    3, which may repeat. One x is in -2 to 2. All are uniform."""

    longest: int = 8
    shortest: int = 1

    form: ClassVar[answers.Form] = answers.NUMBER

    @property
    def name(self) -> str:
        return 'polynomial'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (
            f'Evaluate at x = - {numbers.DIGITS} in * x ** + ? The answer is.',
            scratchpad.ALPHABET,
            'sum: 0 = 0',
        )

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        (length,) = bin
        coefficients = rng.integers(-3, 4, size=(count, length)).tolist()
        degrees = rng.integers(0, 4, size=(count, length)).tolist()
        points = rng.integers(-2, 3, size=count).tolist()
        drawn = []
        for row, powers, x in zip(coefficients, degrees, points, strict=True):
            terms = list(zip(row, powers, strict=True))
            answer = spaced(sum(a * x**k for a, k in terms) % MODULUS)
            source = f'Evaluate at x = {spaced(x)} in {_written(terms)} ? '
            drawn.append(Example(source, f'The answer is {answer}.', length, answer))
        return drawn

    def steps(self, source: str) -> list[SolutionStep]:
        found = matched(self.name, _SOURCE, source)
        matches = [_TERM.fullmatch(term) for term in found[2].split(' + ')]
        if not all(matches):
            raise no_source(self.name, source)
        x = read(found[1])
        terms = [(read(match[1]), read(match[2])) for match in matches if match]
        steps, total = [], 0
        for at, (a, k) in enumerate(terms):
            value = a * x**k
            after = (total + value) % MODULUS
            steps.append(
                SolutionStep(
                    input=_written([(a, k)]),
                    computation=(
                        f'{spaced(a)} * {spaced(x)} ** {spaced(k)} = {spaced(a)} * {spaced(x**k)}'
                    ),
                    output=spaced(value),
                    variables=f'sum: {spaced(total)} + {spaced(value)} = {spaced(after)}',
                    remaining=_written(terms[at + 1 :]),
                )
            )
            total = after
        return steps


def _written(terms: list[tuple[int, int]]) -> str:
    return ' + '.join(f'{spaced(a)} * x ** {spaced(k)}' for a, k in terms)
