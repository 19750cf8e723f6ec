"""The 13 tasks of RULER."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from nope.evals.answers import Sample
from nope.evals.ruler.common_words import CommonWords
from nope.evals.ruler.corpora import HOTPOTQA, SQUAD
from nope.evals.ruler.fitting import Request
from nope.evals.ruler.frequent_words import FrequentWords
from nope.evals.ruler.needles import Needles
from nope.evals.ruler.questions import Questions
from nope.evals.ruler.tracking import Tracking


class RulerTask(Protocol):
    """Interface of tasks.

    budget: tokens of an answer, which a length includes. metric: a key of `metrics.METRICS`.
    files: of the user, by their names. needs_words: whether it needs a vocabulary. opening: as in
    `answers.Part`.
    """

    budget: int
    metric: str
    opening: str

    @property
    def needs_words(self) -> bool: ...

    @property
    def files(self) -> tuple[str, ...]: ...

    def samples(self, request: Request) -> Iterator[Sample]: ...


TASKS: Mapping[str, RulerTask] = {
    'niah_single_1': Needles('noise'),
    'niah_single_2': Needles('essay'),
    'niah_single_3': Needles('essay', value='uuids'),
    'niah_multikey_1': Needles('essay', keys=4),
    'niah_multikey_2': Needles('needle'),
    'niah_multikey_3': Needles('needle', key='uuids', value='uuids'),
    'niah_multivalue': Needles('essay', values=4),
    'niah_multiquery': Needles('essay', queries=4),
    'vt': Tracking(),
    'cwe': CommonWords(),
    'fwe': FrequentWords(),
    'qa_1': Questions(SQUAD),
    'qa_2': Questions(HOTPOTQA),
}

# Those that read no file of the user.
FREE = tuple(name for name, task in TASKS.items() if not task.files)


def check_names(names: Sequence[str]) -> None:
    """ValueError for names that are no tasks, none, or some of them twice."""
    unknown = [name for name in names if name not in TASKS]
    if unknown or not names or len(set(names)) < len(names):
        raise ValueError(
            f'tasks is {", ".join(map(str, names)) or "empty"}; it must be one or more of '
            f'{", ".join(TASKS)}, each once'
        )
