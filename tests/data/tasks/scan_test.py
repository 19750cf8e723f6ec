"""SCAN: all commands, the split by length, a second interpreter."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from nope.data.tasks import TASKS, Sizes, dataset, named
from nope.data.tasks.scan import commands

RNG = np.random.default_rng(0)


def solve(command: str) -> str:
    """Actions of a command by rewriting its text, one rule after the other."""
    if ' and ' in command:
        first, second = command.split(' and ')
        return f'{solve(first)} {solve(second)}'
    if ' after ' in command:
        first, second = command.split(' after ')
        return f'{solve(second)} {solve(first)}'
    if found := re.fullmatch('(.*) (twice|thrice)', command):
        return ' '.join([solve(found[1])] * {'twice': 2, 'thrice': 3}[found[2]])
    if found := re.fullmatch('(.*) around (left|right)', command):
        return ' '.join([solve(f'{found[1]} {found[2]}')] * 4)
    if found := re.fullmatch('(.*) opposite (left|right)', command):
        return f'{solve("turn " + found[2])} {solve(f"{found[1]} {found[2]}")}'
    if found := re.fullmatch('turn (left|right)', command):
        return found[1].capitalize()
    if found := re.fullmatch('(.*) (left|right)', command):
        return f'{found[2].capitalize()} {solve(found[1])}'
    return command.capitalize()


def test_the_grammar_has_20910_commands() -> None:
    every = [command for command, _ in commands()]
    assert len(every) == len(set(every)) == 20_910


def test_a_second_interpreter_agrees_on_every_command() -> None:
    assert all(solve(command) == ' '.join(actions) for command, actions in commands())


def test_the_split_by_length_has_the_papers_sizes() -> None:
    data = dataset(TASKS['scan'])
    sizes = Sizes(len(data.train), len(data.validation), len(data.test))
    assert sizes == TASKS['scan'].paper_sizes == Sizes(15_997, 1_777, 3_136)
    assert max(example.length for example in data.train) == 25
    tested = {example.length for example in data.test}
    assert (min(tested), max(tested)) == (26, 48)
    others = {example.source for example in (*data.validation, *data.test)}
    assert others.isdisjoint(example.source for example in data.train)


def test_the_bins_of_the_test_are_the_lengths_in_the_papers_figures() -> None:
    lengths = [length for (length,) in TASKS['scan'].bins('test')]
    assert lengths == [26, 27, 28, 30, 32, 33, 36, 40, 48]


def test_another_length_splits_the_same_commands() -> None:
    data = dataset(named('scan', longest=10))
    lengths = Counter(len(actions) for _, actions in commands())
    assert len(data.test) == sum(n for length, n in lengths.items() if length > 10)
    assert sum(map(len, (data.train, data.validation, data.test))) == 20_910


def test_an_example_has_the_papers_words() -> None:
    examples = TASKS['scan'].examples((3,), RNG, 1)
    targets = {example.source: example.target for example in examples}
    assert targets['Solve: jump opposite left'] == 'Left Left Jump'
    assert targets['Solve: turn left thrice'] == 'Left Left Left'
    assert targets['Solve: look after walk twice'] == 'Walk Walk Look'


def test_there_is_no_test_beyond_the_longest_command() -> None:
    with pytest.raises(ValueError, match='longest=48; accepted: less than 48'):
        named('scan', longest=48)
