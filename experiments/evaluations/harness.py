"""Tasks of EleutherAI's harness: those of Table 1, or others."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Self

from experiments.bench import Bench
from experiments.config import USERS, Section
from experiments.evaluations.base import TEXT_FIELDS, Asked, Rows, TextSpec, of_text, open_log
from experiments.programs import Program, Scoring
from nope.data import digest, load_tokenizer
from nope.data.sources import folders
from nope.evals import harness
from nope.records import Records

HUB = 'hub'  # of `files`: data sets are downloaded


@dataclasses.dataclass(frozen=True, kw_only=True)
class HarnessSpec(TextSpec):
    """Tasks of lm_eval (`nope.evals.harness`).

    files: folder of the tasks' data, '' for the hub. include: folder of task files, or ''.
    fingerprint: of the content of both. limit: documents of each task at most, 0 for all.
    """

    tasks: tuple[str, ...]
    files: str = dataclasses.field(metadata={'identity': False})
    include: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    window: int
    limit: int
    kind = 'harness'
    fields = ('window', 'harness', *TEXT_FIELDS)

    @classmethod
    def from_entry(cls, asked: Asked) -> Self:
        section = asked.section('harness')
        common = of_text(asked, section)
        names = section.names('tasks') or tuple(harness.TASKS)
        local, include = _files(section, names), section.execution('include')
        with section.reading('include'):
            harness.find(names, include=_folder(include), data=None)
        with section.reading('files'):
            harness.find(names, include=_folder(include), data=_folder(local))
        window = asked.window()
        asked.check_reach(common['position'], window)
        return cls(
            tasks=names,
            files=local,
            include=include,
            fingerprint=digest.of_json(
                [
                    version('lm_eval'),
                    _content(include, ('*.yaml', '*.yml', '*.py')),
                    _content(local, tuple(f'{name}.*' for name in names)),
                ]
            ),
            window=window,
            limit=0 if section.optional('limit') is None else section.at_least('limit', 1),
            **common,
        )

    @property
    def extent(self) -> int:
        return self.window

    def check(self, bench: Bench) -> None:
        harness.check(
            self.tasks,
            load_tokenizer(self.run.data.tokenizer),
            bos=self.bos,
            include=_folder(self.include),
            data=_folder(self.files),
        )

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = self.measured(bench)
        found = harness.run(
            self.tasks,
            self.generator(bench, variables),
            load_tokenizer(self.run.data.tokenizer),
            window=self.window,
            bos=self.bos,
            limit=self.limit or None,
            log=open_log(folder),
            progress=bench.bar('tasks'),
            include=_folder(self.include),
            data=_folder(self.files),
        )
        return found, more

    def programs(self, rows: Rows) -> Iterator[Program]:
        yield Scoring(self.model, self.extent, rows(self.extent, Scoring.rules))

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts, samples = found.attributes, int(found['samples'].sum())
        start = 'after a BOS' if facts['bos'] else 'without a BOS'
        return f'{samples:,} questions of {len(facts["metrics"])} tasks', f'zero-shot, {start}'


def _files(section: Section, names: tuple[str, ...]) -> str:
    """The folder of the tasks' data, '' for the hub."""
    files = section.execution('files')
    if not files:
        raise ValueError(
            f'{section.path("files")} is empty: --config.harness.files=FOLDER with the data of the '
            f'tasks ({", ".join(names)}), which {USERS}; the layout is in '
            f'nope/evals/harness/published.py. {HUB!r} downloads them instead'
        )
    return '' if files == HUB else files


def _folder(path: str) -> pathlib.Path | None:
    return pathlib.Path(path) if path else None


def _content(path: str, patterns: tuple[str, ...]) -> Any:
    """Identity of the files in a folder that match; None for no folder."""
    folder = _folder(path)
    if folder is None:
        return None
    found = {p for pattern in patterns for p in folder.rglob(pattern) if p.is_file()}
    names = sorted(p.relative_to(folder).as_posix() for p in found)
    return folders.identity('files', folder, names)
