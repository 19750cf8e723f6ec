"""LEGO: chains of sign assignments, of which one variable is asked for."""

from __future__ import annotations

import dataclasses
import re
import string
from typing import ClassVar

import numpy as np

from nope.data.tasks import answers, scratchpad
from nope.data.tasks.base import Bin, Example, SteppedTask, matched, no_source
from nope.data.tasks.scratchpad import SolutionStep
from nope.runtime.errors import FieldError

VARIABLES = string.ascii_lowercase
_SOURCE = re.compile(r'If (.+)\. Then, what is the value of ([a-z])\? ')
_CLAUSE = re.compile(r'([a-z]) = (?:([+-])1|([+-]) ([a-z]))')


@dataclasses.dataclass(frozen=True)
class Lego(SteppedTask):
    """A chain of `length` variables: the first is +1 or -1, each later one + or - the one before.

    Letters and values are uniform, and clauses stay in order. A chain yields floor(n / 2)
    examples, which ask for each variable of index ceil(n / 2) to n - 1.
    """

    longest: int = 8
    shortest: int = 4

    form: ClassVar[answers.Form] = answers.WORD
    least: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest_test > len(VARIABLES):
            if self.reach is not None:
                raise FieldError('reach', self.reach, f'at most {len(VARIABLES)}, one a letter')
            raise ValueError(
                f'{self.name}: longest={self.longest} makes tests of {self.longest_test} '
                f'variables, and there are {len(VARIABLES)} letters; at most {len(VARIABLES) // 2}'
            )

    @property
    def name(self) -> str:
        return 'lego'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (
            'If = -1, = +1. Then, what is the value of? The answer is',
            scratchpad.ALPHABET,
            ' '.join(VARIABLES),
        )

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        (length,) = bin
        drawn = []
        for _ in range(count // (length // 2)):
            signs = rng.integers(2, size=length).tolist()
            names = [VARIABLES[i] for i in rng.permutation(len(VARIABLES))[:length]]
            values = ['+1' if sign else '-1' for sign in signs]
            clauses = [f'{names[0]} = {values[0]}']
            for at in range(1, length):
                sign = '+' if values[at] == values[at - 1] else '-'
                clauses.append(f'{names[at]} = {sign} {names[at - 1]}')
            for at in range((length + 1) // 2, length):
                source = f'If {", ".join(clauses)}. Then, what is the value of {names[at]}? '
                answer = values[at]
                drawn.append(Example(source, f'The answer is {answer}.', length, answer))
        return drawn

    def steps(self, source: str) -> list[SolutionStep]:
        found = matched(self.name, _SOURCE, source)
        clauses = found[1].split(', ')
        matches = [_CLAUSE.fullmatch(clause) for clause in clauses]
        if not all(matches):
            raise no_source(self.name, source)
        steps: list[SolutionStep] = []
        values: dict[str, str] = {}
        for at, match in enumerate(matches):
            assert match is not None
            name, start, sign, before = match.groups()
            if start is None and before not in values:
                raise no_source(self.name, source)
            turned = start or ('+' if sign == values[before][0] else '-')
            values[name] = f'{turned}1'
            steps.append(
                SolutionStep(
                    input=name,
                    computation=f'{sign} {before} = {sign} {values[before]}' if sign else '',
                    output=values[name],
                    variables=None,
                    remaining=', '.join(clauses[at + 1 :]),
                )
            )
            if name == found[2]:
                return steps
        raise no_source(self.name, source)
