"""SCAN: navigation commands and their actions (Lake and Baroni, arXiv 1711.00350), by length.

C -> S and S | S after S | S
S -> V twice | V thrice | V
V -> D opposite T | D around T | D T | U, where D T of 'turn' turns alone
D -> U | turn;  U -> walk | look | run | jump;  T -> left | right
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from nope.data.tasks.base import Bin, Example, Sizes, Task

_VERBS = {'walk': 'Walk', 'look': 'Look', 'run': 'Run', 'jump': 'Jump'}
_TURNS = {'left': 'Left', 'right': 'Right'}
_TIMES = {'': 1, ' twice': 2, ' thrice': 3}
LONGEST = 48  # actions of any command

Command = tuple[str, tuple[str, ...]]  # a command and its actions


@dataclasses.dataclass(frozen=True)
class Scan(Task):
    """All 20,910 commands. A length is the number of actions: up to `longest` in training, all
    longer ones in the test. The bins are the lengths that commands have."""

    longest: int = 25
    shortest: int = 1

    separator: ClassVar[str] = '[SEP] '
    paper_sizes: ClassVar[Sizes] = Sizes(train=15_997, validation=1_777, test=3_136)
    exhaustive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest >= LONGEST:
            raise ValueError(
                f'{self.name}: longest={self.longest}; accepted: less than {LONGEST}, the actions '
                'of the longest command'
            )

    @property
    def name(self) -> str:
        return 'scan'

    @property
    def longest_test(self) -> int:
        return LONGEST

    @property
    def alphabet(self) -> tuple[str, ...]:
        words = (*_VERBS, *_VERBS.values(), *_TURNS, *_TURNS.values())
        return ('Solve:[SEP]', 'and after twice thrice opposite around turn', ' '.join(words))

    def bins(self, split: str) -> tuple[Bin, ...]:
        return tuple((n,) for n in self.lengths(split) if n in _by_length())

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        drawn = []
        for command, actions in _by_length()[bin[0]]:
            target = ' '.join(actions)
            drawn.append(Example(f'Solve: {command}', target, bin[0], target))
        return drawn


def commands() -> Iterator[Command]:
    """Every command of the grammar, with its actions, in the grammar's order."""
    phrases: list[Command] = [(verb, (act,)) for verb, act in _VERBS.items()]
    for verb, act in (*_VERBS.items(), ('turn', '')):
        acts = (act,) if act else ()
        for side, turn in _TURNS.items():
            phrases.append((f'{verb} {side}', (turn, *acts)))
            phrases.append((f'{verb} opposite {side}', (turn, turn, *acts)))
            phrases.append((f'{verb} around {side}', (turn, *acts) * 4))
    sentences = [
        (verb + times, actions * repeats)
        for verb, actions in phrases
        for times, repeats in _TIMES.items()
    ]
    yield from sentences
    for (first, did), (second, does) in itertools.product(sentences, repeat=2):
        yield f'{first} and {second}', did + does
        yield f'{first} after {second}', does + did


@functools.cache
def _by_length() -> dict[int, list[Command]]:
    found: dict[int, list[Command]] = {}
    for command in commands():
        found.setdefault(len(command[1]), []).append(command)
    return found
