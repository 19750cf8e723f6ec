"""What a config can ask of a task, and what it takes to add one."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest

from nope.data import tasks
from nope.data.tasks import TASKS, Example, Sizes, Task, WordTokenizer, answers, dataset, named


@dataclasses.dataclass(frozen=True)
class Count(Task):
    """How many words there are."""

    longest: int = 6
    shortest: int = 1

    form: ClassVar[answers.Form] = answers.NUMBER

    @property
    def name(self) -> str:
        return 'count'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return ('Count: a b? The answer is 0 1 2 3 4 5 6 7 8 9 10 11 12.',)

    def _draw(self, bin, rng: np.random.Generator, count: int) -> list[Example]:
        rows = rng.integers(2, size=(count, bin[0])).tolist()
        texts = [' '.join('ab'[bit] for bit in row) for row in rows]
        return [
            Example(f'Count: {text}? ', f'The answer is {bin[0]}.', bin[0], str(bin[0]))
            for text in texts
        ]


def test_a_task_is_one_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, 'count', Count())
    task = named('count', longest=4)
    data = dataset(task, Sizes(40, 8, 16))
    assert (len(data.train), len(data.validation)) == (40, 8)
    assert Counter(example.length for example in data.test) == {5: 4, 6: 4, 7: 4, 8: 4}
    tokenizer = WordTokenizer.of(task)
    for example in data.train:
        assert tokenizer.decode(tokenizer.encode(example.source)) == example.source.strip()
        assert task.form.matches(f'The answer is {example.length}.', example.target)


def test_the_page_has_a_row_for_every_task() -> None:
    page = pathlib.Path(tasks.__file__).with_name('README.md').read_text()
    table = page.partition('| task | source and target |')[2].partition('\n\n')[0]
    assert re.findall(r'^\| `(\w+)`', table, re.MULTILINE) == list(TASKS)


def test_every_task_has_its_name() -> None:
    assert all(task.name == name for name, task in TASKS.items())


def test_an_unknown_task_or_field_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"task 'copy'; accepted: rsc, rsc2x, rdc, .*, pcfg"):
        named('copy')
    with pytest.raises(ValueError, match="task 'parity' has no field 'symbols'; accepted: longest"):
        named('parity', symbols=('a',))


@pytest.mark.parametrize(
    'name, changes, problem',
    [
        ('lego', {'longest': 14}, 'tests of 28 variables, and there are 26 letters; at most 13'),
        ('lego', {'reach': 30}, 'reach is 30; at most 26, one a letter'),
        ('lego', {'shortest': 1}, 'shortest=1 and longest=8; accepted: 2 <= shortest'),
        ('parity', {'longest': 3}, 'shortest=4 and longest=3'),
        ('parity', {'shortest': 2.5}, r'parity: shortest=2\.5; accepted: a whole number'),
        ('parity', {'shortest': 0}, 'accepted: 1 <= shortest <= longest'),
        ('addition', {'longest': 2001}, 'longest=2001; at most 2000 digits'),
        ('addition', {'longest': 0}, 'addition: shortest=1 and longest=0'),
        ('cmc', {'variant': 'mc'}, "variant 'mc'; accepted: rsc, rsc2x, rdc, cmc, cmc2x"),
        ('mc', {'variant': 'cmc'}, "variant 'cmc'; accepted: mc, mc2x, mcrv"),
        ('mc', {'symbols': ()}, 'symbols is empty'),
        ('sort_single', {'symbols': ('a', 'b', 'a')}, 'symbols has 3, 2 of them different'),
        ('pcfg', {'longest': 200}, 'longest=200; accepted: less than 200'),
    ],
)
def test_values_out_of_a_tasks_range_are_refused(name: str, changes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        named(name, **changes)
