"""Addition of two numbers, digit by digit."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import ClassVar

import numpy as np

from nope.data.tasks import answers, numbers, scratchpad
from nope.data.tasks.base import TRAIN, Bin, Example, SteppedTask, matched
from nope.data.tasks.numbers import spaced
from nope.data.tasks.scratchpad import SolutionStep
from nope.runtime.errors import FieldError

LONGEST = 2000  # of training: Python writes integers of up to 4300 digits
_SOURCE = re.compile(rf'Compute ({numbers.PATTERN}) \+ ({numbers.PATTERN}) \? ')


@dataclasses.dataclass(frozen=True)
class Addition(SteppedTask):
    """Addition. A bin is the digits of both operands, a length the more of them; at least one
    operand of a test is longer than any of training. Operands are uniform without a leading zero;
    those of one digit include 0."""

    longest: int = 8
    shortest: int = 1

    form: ClassVar[answers.Form] = answers.NUMBER

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest > LONGEST:
            raise ValueError(f'{self.name}: longest={self.longest}; at most {LONGEST} digits')
        if self.longest_test > 2 * LONGEST:
            raise FieldError('reach', self.reach, f'at most {2 * LONGEST} digits')

    @property
    def name(self) -> str:
        return 'addition'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (
            f'Compute {numbers.DIGITS} + ? The answer is.',
            scratchpad.ALPHABET,
            f'carry: = {" ".join(map(str, range(10, 20)))}',  # sums of two digits and a carry
        )

    def bins(self, split: str) -> tuple[Bin, ...]:
        lengths = self.lengths(split)
        every = itertools.product(range(self.shortest, lengths[-1] + 1), repeat=2)
        return tuple(bin for bin in every if split == TRAIN or max(bin) in lengths)

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        operands = []
        for digits in bin:
            rows = rng.integers(10, size=(count, digits))
            if digits > 1:
                rows[:, 0] = rng.integers(1, 10, size=count)
            operands.append([int(''.join(map(str, row))) for row in rows.tolist()])
        drawn = []
        for first, second in zip(*operands, strict=True):
            answer = spaced(first + second)
            source = f'Compute {spaced(first)} + {spaced(second)} ? '
            drawn.append(Example(source, f'The answer is {answer}.', max(bin), answer))
        return drawn

    def steps(self, source: str) -> list[SolutionStep]:
        found = matched(self.name, _SOURCE, source)
        first, second = ([int(digit) for digit in group.split()] for group in found.groups())
        size = max(len(first), len(second))
        first = [0] * (size - len(first)) + first
        second = [0] * (size - len(second)) + second
        steps, carry = [], 0
        for at in reversed(range(size)):
            rest = f'{_number(first[:at])} + {_number(second[:at])}'
            steps.append(_step(first[at], second[at], carry, rest))
            carry = (first[at] + second[at] + carry) // 10
        if carry:
            steps.append(_step(0, 0, carry, ' + '))
        return steps


def _number(digits: list[int]) -> str:
    return spaced(int(''.join(map(str, digits)))) if digits else ''


def _step(first: int, second: int, carry: int, rest: str) -> SolutionStep:
    total = first + second + carry
    return SolutionStep(
        input=f'{first}, {second}',
        computation=f'{first} + {second} + carry = {first + second} + {carry} = {total}',
        output=str(total % 10),
        variables=f'carry: {total // 10}',
        remaining=rest,
    )
