"""Summation of digits modulo 10."""

from __future__ import annotations

import dataclasses
import re
from typing import ClassVar

import numpy as np

from nope.data.tasks import answers, numbers, scratchpad
from nope.data.tasks.base import Bin, Example, SteppedTask, matched
from nope.data.tasks.numbers import spaced
from nope.data.tasks.scratchpad import SolutionStep

MODULUS = 10
_SOURCE = re.compile(r'Compute: ([0-9](?: \+ [0-9])*) \.')


@dataclasses.dataclass(frozen=True)
class Summation(SteppedTask):
    """Sum modulo 10 of `length` digits, uniform in 1 to 9."""

    longest: int = 8
    shortest: int = 2

    separator: ClassVar[str] = '[SEP] '
    form: ClassVar[answers.Form] = answers.NUMBER

    @property
    def name(self) -> str:
        return 'summation'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (
            f'Compute: {numbers.DIGITS} + .[SEP] The answer is',
            scratchpad.ALPHABET,
            'sum = 1 [ sum: 1',
        )

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        (length,) = bin
        drawn = []
        for row in rng.integers(1, 10, size=(count, length)).tolist():
            answer = str(sum(row) % MODULUS)
            source = f'Compute: {" + ".join(map(str, row))} .'
            drawn.append(Example(source, f'The answer is {answer} .', length, answer))
        return drawn

    def steps(self, source: str) -> list[SolutionStep]:
        found = matched(self.name, _SOURCE, source)
        values = [int(value) for value in found[1].split(' + ')]
        steps, total = [], 0
        for at, value in enumerate(values):
            output, after = value + total, (value + total) % MODULUS
            steps.append(
                SolutionStep(
                    input=str(value),
                    computation=f'{value} + sum = {value} + {total} =',
                    output=spaced(output),
                    variables=f'sum: {spaced(output)} = {after}',
                    remaining=' + '.join(map(str, values[at + 1 :])),
                )
            )
            total = after
        return steps
