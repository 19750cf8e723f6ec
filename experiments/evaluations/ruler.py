"""RULER: 13 tasks on long prompts, some of them on files of the user."""

from __future__ import annotations

import dataclasses
import functools
import logging
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from experiments.bench import Bench
from experiments.config import Section
from experiments.evaluations.base import Rows, TableRow
from experiments.evaluations.entry import EvalEntry
from experiments.evaluations.text_base import (
    ASKING_FIELDS,
    LengthsOfTextSpec,
    after_bos,
    answering,
    before_prompts,
    ends_of,
    folder_of,
    of_text,
)
from experiments.programs import Program
from nope.data import digest, load_tokenizer, prefix_of
from nope.evals import ruler
from nope.records import Records
from nope.runtime import processes, processors
from nope.variables import Variables

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RulerSpec(LengthsOfTextSpec):
    """RULER v1 (`nope.evals.ruler`, arXiv 2404.06654).

    lengths: tokens of a prompt and its answer.
    samples: of each task and length. plan_seed: of the prompts.

    folder: of the user's files, '' for none.
    fingerprint: of their content and of the words. typed: path of the field of the lengths.

    In a section, `leave_out` leaves out tasks that a length has no room for.
    """

    tasks: tuple[str, ...]
    samples: int
    plan_seed: int
    folder: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    typed: str = dataclasses.field(compare=False, metadata={'identity': False})
    kind = 'ruler'
    fields = ('times', 'ruler', *ASKING_FIELDS)
    command = 'ruler'
    defaults: ClassVar = {
        'tasks': (),
        'lengths': (),
        'samples': 500,
        'seed': 42,
        'folder': '',
        'bos': None,
        'leave_out': True,
    }
    flags: ClassVar = {'folder': 'files'}
    title = 'RULER'

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = cls.own_section(asked)
        common = of_text(asked, section)
        folder = section.execution('folder')
        corpora = ruler.Corpora(pathlib.Path(folder) if folder else None)
        if folder and not any(map(corpora.has, ruler.FILES)):
            raise section.error('folder', f'it has none of {", ".join(ruler.FILES)}')
        readable = [t for t in ruler.TASKS if all(map(corpora.has, _files_of((t,))))]
        tasks = section.names('tasks', ruler.TASKS) or tuple(readable)
        lengths, field = _lengths(asked, section)
        beyond = before_prompts(asked, common['bos'])
        asked.check_reach(common['position'], max(lengths) + beyond)
        files = _files_of(tasks)
        if files:
            wanted = '; '.join(f'{name}: {ruler.FILES[name]}' for name in files)
            folder = folder_of(section, section.path('tasks'), wanted)
        with section.reading('folder', asked_by='tasks'):
            corpora.check(files)
        samples, seed = section.at_least('samples', 1), section.at_least('seed', 0)
        if section.get('leave_out', False):
            given = asked.run.data.tokenizer, tasks, lengths, samples, seed, str(folder)
            try:
                tasks = _fitting(*given)
            except ValueError as error:  # no task is left
                raise ValueError(f'{field}: {error}') from error
        words = any(ruler.TASKS[task].needs_words for task in tasks)
        content = [
            corpora.identity(_files_of(tasks)),
            ruler.load_words().fingerprint if words else None,
            *ends_of(asked.run),
        ]
        return cls(
            tasks=tasks,
            lengths=lengths,
            samples=samples,
            plan_seed=seed,
            folder=str(folder),
            fingerprint=digest.of_json(content),
            typed=field,
            **common,
        )

    @property
    def reads(self) -> Mapping[int, int]:
        return dict.fromkeys(self.lengths, self.samples * len(self.tasks))

    def check(self, bench: Bench) -> None:
        try:
            self._plan(bench).check()
        except ValueError as error:
            raise ValueError(f'{self.typed}: {error}') from error

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        plan, workers = self._plan(bench), processors.usable()
        bar = bench.bar('prompts', stops=False)
        processes.from_first(lambda: ruler.build(plan, workers=workers, progress=bar))
        return ruler.run(
            self.generator(bench, variables), plan, bos=self.bos, chat=self.chat, **how
        )

    def rows(self, found: Records) -> list[TableRow]:
        return self.task_rows(found)

    def programs(self, rows: Rows) -> Iterator[Program]:
        prefix = len(prefix_of(self.tokenizer, self.bos))
        budgets = sorted({ruler.TASKS[task].budget for task in self.tasks})
        return answering(self, [(n - b + prefix, b) for n in self.lengths for b in budgets], rows)

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts, tasks = found.attributes, found.coordinates['task']
        length = f'{max(found.coordinates["length"]):,} {facts["token"]}s'
        several = f'{len(tasks)} tasks' if len(tasks) > 1 else str(tasks[0])
        how = f'{facts["samples"]:,} samples each, greedy{after_bos(found, "prompt")}'
        return f'RULER, {several} of up to {length}', how

    def _plan(self, bench: Bench) -> ruler.RulerPlan:
        return ruler.RulerPlan(
            self.tokenizer,
            self.tasks,
            self.lengths,
            samples=self.samples,
            seed=self.plan_seed,
            corpora=ruler.Corpora(pathlib.Path(self.folder) if self.folder else None),
            cache=bench.cache / 'ruler',
        )


@functools.lru_cache(maxsize=16)
def _fitting(
    tokenizer: str,
    tasks: tuple[str, ...],
    lengths: tuple[int, ...],
    samples: int,
    seed: int,
    folder: str,
) -> tuple[str, ...]:
    """The tasks that every length has room for; the others are named once. ValueError for none."""
    corpora = ruler.Corpora(pathlib.Path(folder) if folder else None)
    given = load_tokenizer(tokenizer), tasks, lengths, samples, seed, corpora
    plan, misfits = ruler.RulerPlan(*given).fitting()
    for task, why in misfits.items():
        log.warning('RULER leaves out %s, at every length: %s', task, why)
    return plan.tasks


def _files_of(tasks: tuple[str, ...]) -> list[str]:
    """The user's files that tasks read."""
    return list(dict.fromkeys(name for task in tasks for name in ruler.TASKS[task].files))


def _lengths(asked: EvalEntry, section: Section) -> tuple[tuple[int, ...], str]:
    """Lengths in tokens, ascending, and the field that says them: the section's `lengths`, or the
    entry's `tokens`, or `times`, multiples of L."""
    given = section['lengths']
    if given:
        field = section.path('lengths')
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given)
        if not whole or len(set(given)) < len(given):
            raise section.error('lengths', 'accepted: different numbers of tokens, as in (4096,)')
        return tuple(sorted(given)), field
    field = 'tokens' if 'tokens' in asked.entry else 'times'
    return tuple(sorted(asked.lengths())), asked.entry.path(field)
