"""Exact match on the synthetic task that a model was trained on, by length."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Self

from experiments.bench import Bench
from experiments.evaluations import task_examples
from experiments.evaluations.base import Rows
from experiments.evaluations.entry import EvalEntry, count_of
from experiments.evaluations.text_base import TEXT_FIELDS, TextSpec, of_text
from experiments.programs import Continuing, Program, answering
from experiments.runs import Source, first_run
from nope.data import TaskData
from nope.data.tasks import answers
from nope.evals import batching, exact_match
from nope.evals.generation import Options
from nope.records import Records
from nope.runtime.errors import FieldError, describe
from nope.variables import Variables

REFUSED, WRONG = LONGER = ('refused', 'wrong')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExactMatchSpec(TextSpec):
    """Exact match by length (`nope.evals.exact_match`, arXiv 2305.19466), with a scratchpad also
    how that is. Lengths of training have validation examples, longer ones those of the test.

    tests: examples of each length; None for all.

    limit: tokens of a prompt and its answer. longer: 'refused' or 'wrong', an example with more.

    reach: greatest length of the tests. None is that of the task, 2 L of most.
    typed: path of the limit.
    """

    tests: int | None
    limit: int
    longer: str
    reach: int | None = None
    typed: str = dataclasses.field(
        default='exact_match.limit', compare=False, metadata={'identity': False}
    )
    kind = 'exact_match'
    of_tasks = True
    of_encoders = True
    fields = ('exact_match', *TEXT_FIELDS)
    title = 'exact match'

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = asked.section('exact_match')
        tests = count_of(section, 'tests', None)
        common = of_text(asked, section, bos=False)  # an example is what its task says
        limit = section.at_least('limit', 2)
        asked.check_reach(common['position'], limit)
        longer = section.choice('longer', LONGER)
        typed = section.path('limit')
        reach = count_of(section, 'reach', None)
        data = first_run(asked.run).data
        assert isinstance(data, TaskData)  # `of_tasks` says so
        try:
            _reaching(data, reach)
        except FieldError as error:
            raise section.error(error.field, error.rule) from error
        except ValueError as error:
            raise section.error('reach', str(error)) from error
        return cls(tests=tests, limit=limit, longer=longer, reach=reach, typed=typed, **common)

    @property
    def task_data(self) -> TaskData:
        return _reaching(super().task_data, self.reach)

    @property
    def extent(self) -> int:
        return self.limit

    @property
    def known(self) -> dict[str, Any]:
        task = self.task_data.task
        read = [task.longest]
        run: Source | None = self.run
        while run is not None:  # lambda may have been searched on longer examples
            read += [run.data.task.longest] if isinstance(run.data, TaskData) else []
            run = run.init
        facts = {'task': task.name, 'longest': task.longest, 'longest_read': max(read)}
        facts |= {} if self.reach is None else {'reach': self.reach}
        return super().known | facts | {'scratchpad': task.style.name}

    def check(self, bench: Bench) -> None:
        self.task_data.check_targets()
        sizes = self.task_data.sizes or self.task_data.task.paper_sizes
        if sizes.validation < 1:
            raise ValueError(
                f'task.validation is {sizes.validation}; accepted: at least 1, since exact match '
                'inside L is that of validation examples'
            )
        if not any(question.split == 'validation' for question in self._asked().questions):
            raise ValueError(f'task.validation: {exact_match.no_validation(self.task_data)}')

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        answering = exact_match.answering(
            self.model, variables, bench.mesh, batch_tokens=bench.batch_tokens
        )
        return exact_match.run(answering, self._asked(), **how)

    def programs(self, rows: Rows) -> Iterator[Program]:
        yield answering(self.model, self.limit, rows)
        if self.task_data.task.form is not answers.WHOLE:
            # Of prompts that are too long no answer is asked.
            prompt = min(task_examples.longest(self.task_data).prompt, self.limit - 1)
            options = Options(new_tokens=self.limit - prompt)
            count = rows(self.limit, Continuing.rules)
            yield Continuing(self.model, options, batching.padded_length(prompt), count)

    def measured_on(self, found: Records) -> tuple[str, str]:
        lengths = found.coordinates['length']
        what = f'{found.attributes["task"]} of lengths {lengths[0]} to {lengths[-1]}'
        return what, f'{int(found["samples"].sum()):,} examples'

    def _asked(self) -> exact_match.Asked:
        keep_long = self.longer == WRONG
        try:
            return exact_match.ask(self.task_data, self.tests, self.limit, keep_long)
        except FieldError as error:  # the limit, alone of what the section gives
            raise ValueError(describe(self.typed, error.value, error.rule)) from error


def _reaching(data: TaskData, reach: int | None) -> TaskData:
    """The data of a task whose tests end at `reach`; errors as of the task."""
    if reach is None:
        return data
    return dataclasses.replace(data, task=dataclasses.replace(data.task, reach=reach))
