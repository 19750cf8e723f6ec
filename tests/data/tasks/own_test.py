"""A task that is not of this package: its targets are checked, and count as content."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

from nope.data.tasks import Example, Sizes, Task, TaskData, answers, named, scratchpad
from nope.data.tasks.base import Bin

SIZES = Sizes(train=60, validation=30, test=40)


@dataclasses.dataclass(frozen=True)
class Largest(Task):
    """The largest of some digits."""

    longest: int = 4
    shortest: int = 2
    form: ClassVar[answers.Form] = answers.NUMBER
    stop: ClassVar[str] = '.'

    @property
    def name(self) -> str:
        return 'largest'

    @property
    def alphabet(self) -> tuple[str, ...]:
        return ('Of 0 1 2 3 4 5 6 7 8 9? The answer is 0 1 2 3 4 5 6 7 8 9.',)

    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        rows = rng.integers(10, size=(count, bin[0])).tolist()
        return [
            Example(
                f'Of {" ".join(map(str, row))}?',
                f'The answer is {max(row)}{self.stop}',
                bin[0],
                str(max(row)),
            )
            for row in rows
        ]


class Unstopped(Largest):
    stop = ''


class Smallest(Largest):
    def _draw(self, bin: Bin, rng: np.random.Generator, count: int) -> list[Example]:
        return [e._replace(answer='10') for e in super()._draw(bin, rng, count)]


def test_targets_that_state_their_answer_pass() -> None:
    TaskData(Largest(), SIZES).check_targets()
    TaskData(named('cmc'), dataclasses.replace(SIZES, train=6000)).check_targets()
    full = named('parity', scratchpad=scratchpad.FULL)
    TaskData(full, Sizes(train=300, validation=60, test=60)).check_targets()


@pytest.mark.parametrize('task', [Unstopped(), Smallest()])
def test_a_target_without_its_answer_is_refused(task: Largest) -> None:
    with pytest.raises(ValueError, match=r"largest: the target 'The answer is \d.*form number"):
        TaskData(task, SIZES).check_targets()


def test_a_wrong_scratchpad_is_refused() -> None:
    task = named('parity', scratchpad=scratchpad.FULL)
    (example, *_) = task.examples((task.longest + 1,), np.random.default_rng(0), 1)
    task.check_target(example)
    body, answer = example.target.rsplit('The answer', 1)
    swapped = body.translate(str.maketrans('01', '10')) + 'The answer' + answer
    with pytest.raises(ValueError, match='parity: the scratchpad of the target'):
        task.check_target(example._replace(target=swapped))


def test_other_targets_are_other_data_where_the_task_is_not_of_this_package() -> None:
    own = {type(task): TaskData(task, SIZES).identity() for task in (Largest(), Unstopped())}
    assert own[Largest]['task']['examples'] != own[Unstopped]['task']['examples']
    assert 'examples' not in TaskData(named('cmc'), SIZES).identity()['task']
