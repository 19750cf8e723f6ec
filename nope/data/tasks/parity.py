"""Parity: whether a bit string has an even number of ones."""

from __future__ import annotations

import dataclasses
import re
from typing import ClassVar

import numpy as np

from nope.data.tasks import answers, scratchpad
from nope.data.tasks.base import Bin, Example, SteppedTask, matched
from nope.data.tasks.scratchpad import SolutionStep

_SOURCE = re.compile(r"Is the number of 1's even in the sequence \[ ([01](?:, [01])*) \] \? ")


@dataclasses.dataclass(frozen=True)
class Parity(SteppedTask):
    """Parity of `length` uniform bits: Yes for an even number of ones."""

    longest: int = 8
    shortest: int = 4

    form: ClassVar[answers.Form] = answers.WORD

    @property
    def name(self) -> str:
        return 'parity'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (
            "Is the number of 1's even in the sequence [ 0, 1 ] ? The answer is Yes No.",
            scratchpad.ALPHABET,
            '1 ** par = 1 [ par: 1',
        )

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        (length,) = bin
        drawn = []
        for row in rng.integers(2, size=(count, length)).tolist():
            answer = 'No' if sum(row) % 2 else 'Yes'
            source = f"Is the number of 1's even in the sequence {_listed(row)} ? "
            drawn.append(Example(source, f'The answer is {answer}.', length, answer))
        return drawn

    def steps(self, source: str) -> list[SolutionStep]:
        found = matched(self.name, _SOURCE, source)
        bits = [int(bit) for bit in found[1].split(', ')]
        steps, parity = [], 0
        for at, bit in enumerate(bits):
            after = bit ^ parity
            steps.append(
                SolutionStep(
                    input=str(bit),
                    computation=f'{bit} ** par = {bit} ** {parity}',
                    output=str(after),
                    variables=f'par: {after}',
                    remaining=_listed(bits[at + 1 :]),
                )
            )
            parity = after
        return steps


def _listed(bits: list[int]) -> str:
    return f'[ {", ".join(map(str, bits))} ]'
