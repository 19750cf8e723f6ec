"""RULER: 13 tasks on long prompts, some of them on files of the user."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterator
from typing import Any, Self

from experiments.bench import Bench
from experiments.config import USERS, Section
from experiments.evaluations.base import (
    TEXT_FIELDS,
    Asked,
    Rows,
    TextSpec,
    after_bos,
    ends_of,
    of_text,
    open_log,
)
from experiments.programs import Continuing, Program
from experiments.runs import Source
from nope.data import digest, load_tokenizer, prefix_of
from nope.evals import batching, ruler
from nope.records import Records
from nope.runtime import processes

SHORTEST = 4096  # RULER's own lengths are this one and its doubles


@dataclasses.dataclass(frozen=True, kw_only=True)
class RulerSpec(TextSpec):
    """RULER v1 (`nope.evals.ruler`, arXiv 2404.06654).

    lengths: tokens of a prompt and its answer. samples: of each task and length. plan_seed: of the
    prompts. folder: of the user's files, '' for none. fingerprint: of what is read of them, and of
    the words. typed: path of the field that says the lengths.
    """

    tasks: tuple[str, ...]
    lengths: tuple[int, ...]
    samples: int
    plan_seed: int
    folder: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    typed: str = dataclasses.field(compare=False, metadata={'identity': False})
    kind = 'ruler'
    fields = ('times', 'target', 'ruler', *TEXT_FIELDS)

    @classmethod
    def from_entry(cls, asked: Asked) -> Self:
        section = asked.section('ruler')
        common = of_text(asked, section)
        tasks = section.names('tasks', ruler.TASKS) or ruler.FREE
        lengths, field = _lengths(asked, section)
        prefix = _prefix_tokens(asked.run, common['bos'])
        asked.check_reach(common['position'], max(lengths) + prefix)
        folder = section.execution('folder')
        corpora = ruler.Corpora(pathlib.Path(folder) if folder else None)
        files = list(dict.fromkeys(name for task in tasks for name in ruler.TASKS[task].files))
        _check_files(section, corpora, files, folder)
        words = any(ruler.TASKS[task].needs_words for task in tasks)
        return cls(
            tasks=tasks,
            lengths=lengths,
            samples=section.at_least('samples', 1),
            plan_seed=section.at_least('seed', 0),
            folder=folder,
            fingerprint=digest.of_json(
                [
                    corpora.identity(files),
                    ruler.load_words().fingerprint if words else None,
                    *ends_of(asked.run),
                ]
            ),
            typed=field,
            **common,
        )

    @property
    def extent(self) -> int:
        return max(self.lengths)

    def check(self, bench: Bench) -> None:
        try:
            self._plan(bench).check()
        except ValueError as error:
            raise ValueError(f'{self.typed}: {error}') from error

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        plan, workers = self._plan(bench), os.cpu_count() or 1
        bar = bench.bar('prompts', stops=False)
        processes.from_first(lambda: ruler.build(plan, workers=workers, progress=bar))
        variables, more = self.measured(bench)
        found = ruler.run(
            self.generator(bench, variables),
            plan,
            log=open_log(folder),
            bos=self.bos,
            progress=bench.bar('RULER'),
        )
        return found, more

    def programs(self, rows: Rows) -> Iterator[Program]:
        tokenizer = load_tokenizer(self.run.data.tokenizer)
        prefix = _prefix_tokens(self.run, self.bos)
        by_budget = {ruler.TASKS[task].budget: task for task in self.tasks}
        for length in self.lengths:
            for budget, task in sorted(by_budget.items()):
                options = ruler.options(task, tokenizer)
                prompt = batching.padded_length(length - budget + prefix)
                count = rows(prompt + budget, Continuing.rules)
                yield Continuing(self.model, options, prompt, count)

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts, tasks = found.attributes, found.coordinates['task']
        length = f'{max(found.coordinates["length"]):,} {facts["token"]}s'
        several = f'{len(tasks)} tasks' if len(tasks) > 1 else str(tasks[0])
        how = f'{facts["samples"]:,} samples each, greedy{after_bos(found, "prompt")}'
        return f'RULER, {several} of up to {length}', how

    def _plan(self, bench: Bench) -> ruler.Plan:
        return ruler.Plan(
            load_tokenizer(self.run.data.tokenizer),
            self.tasks,
            self.lengths,
            samples=self.samples,
            seed=self.plan_seed,
            corpora=ruler.Corpora(pathlib.Path(self.folder) if self.folder else None),
            cache=bench.cache / 'ruler',
        )


def _prefix_tokens(run: Source, bos: bool) -> int:
    """Tokens before a prompt, which lengths do not count."""
    return len(prefix_of(load_tokenizer(run.data.tokenizer), bos))


def _lengths(asked: Asked, section: Section) -> tuple[tuple[int, ...], str]:
    """Lengths in tokens, ascending, and the field that says them: the section's `lengths`; or the
    entry's `times`, multiples of L; or its `target`, with halves of it down to 4,096."""
    given = section['lengths']
    if given:
        field = section.path('lengths')
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given)
        if not whole or len(set(given)) < len(given):
            raise section.error('lengths', 'accepted: different numbers of tokens, as in (4096,)')
        return tuple(sorted(given)), field
    if 'times' in asked.entry:
        return tuple(sorted(asked.lengths())), asked.entry.path('times')
    length = asked.scope.length_of(asked.entry, asked.train_length)
    found = [length]
    while found[-1] % 2 == 0 and found[-1] // 2 >= SHORTEST:
        found.append(found[-1] // 2)
    return tuple(reversed(found)), asked.entry.path('target')


def _check_files(section: Section, corpora: ruler.Corpora, files: list[str], folder: str) -> None:
    """ValueError or FileNotFoundError for files that tasks need and that are not there."""
    if files and not folder:
        wanted = '; '.join(f'{name}: {ruler.FILES[name]}' for name in files)
        raise ValueError(
            f'{section.path("folder")} is empty: --config.ruler.folder=FOLDER with the files of '
            f'{section.path("tasks")}, which {USERS} ({wanted})'
        )
    with section.reading('folder', asked_by='tasks'):
        corpora.check(files)
