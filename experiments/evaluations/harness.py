"""Tasks of EleutherAI's harness: the seven of arXiv 2404.12224, Table 1, or others."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, ClassVar, Self

from experiments.bench import Bench
from experiments.config import USERS, Section
from experiments.evaluations.base import Rows, TableRow
from experiments.evaluations.entry import EvalEntry, count_of
from experiments.evaluations.text_base import TEXT_FIELDS, TextSpec, ends_of, of_text
from experiments.programs import Program, Scoring
from nope.data import digest
from nope.data.sources import folders
from nope.evals import harness
from nope.records import Records
from nope.variables import Variables

HUB = 'hub'  # of `files`: data sets are downloaded


@dataclasses.dataclass(frozen=True, kw_only=True)
class HarnessSpec(TextSpec):
    """Tasks of lm_eval (`nope.evals.harness`).

    files: folder of the tasks' data, '' for the hub. include: folder of task files, or ''.
    fingerprint: of the content of both.

    metadata: JSON for tasks that choose their data.

    limit: documents of each task at most, 0 for all.
    beyond: longer answers than the window are read whole.
    typed: paths of the fields of `window` and `beyond`.
    """

    tasks: tuple[str, ...]
    files: str = dataclasses.field(metadata={'identity': False})
    include: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    window: int
    limit: int
    metadata: str = ''
    beyond: bool = False
    typed: tuple[str, str] = dataclasses.field(compare=False, metadata={'identity': False})
    kind = 'harness'
    fields = ('window', 'tokens', 'harness', *TEXT_FIELDS)
    command = 'harness'
    defaults: ClassVar = {
        'tasks': (),
        'files': '',
        'include': '',
        'metadata': '',
        'limit': None,
        'bos': None,
        'beyond': False,
    }
    flags: ClassVar = {'tasks': 'harness-tasks', 'files': 'data'}
    title = 'tasks'

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = cls.own_section(asked)
        common = of_text(asked, section)
        names = section.names('tasks') or tuple(harness.TASKS)
        local, include = _files(section, names), section.execution('include')
        metadata = section.get('metadata', '')
        with section.reading('metadata'):
            how: dict[str, Any] = {
                'include': _folder(include),
                'metadata': harness.metadata_of(metadata),
            }
        with section.reading('include' if include else 'tasks'):
            harness.find(names, **how, data=None)
        with section.reading('files', asked_by='tasks'):
            found = harness.find(names, **how, data=_folder(local))
        in_tokens = 'tokens' in asked.entry
        window = max(asked.lengths()) if in_tokens else asked.window()
        asked.check_reach(common['position'], window)
        return cls(
            tasks=names,
            files=local,
            include=include,
            fingerprint=digest.of_json(
                [
                    version('lm_eval'),
                    _content(include),
                    [digest.of_file(file) for file in found.files],
                    # The default tasks choose among answers; of others a text may be asked for.
                    *(ends_of(asked.run) if set(names) - set(harness.TASKS) else ()),
                ]
            ),
            window=window,
            limit=count_of(section, 'limit', 0),
            metadata=metadata,
            beyond=section['beyond'],
            typed=(asked.entry.path('tokens' if in_tokens else 'window'), section.path('beyond')),
            **common,
        )

    @property
    def extent(self) -> int:
        return self.window

    def check(self, bench: Bench) -> None:
        loaded = self._load()
        most = self.model.longest if self.beyond else self.window
        if most is not None:
            tasks, limit = loaded['tasks'], self.limit or None
            found = harness.longest_endings(tasks, self.tokenizer, over=most, limit=limit)
            self._check_endings(found)

    def _check_endings(self, found: Sequence[harness.Ending]) -> None:
        """ValueError for answers that do not fit the window, or the positions of the model."""
        if not found:
            return
        worst = max(found, key=lambda ending: ending.tokens)
        window, beyond = self.typed
        told = (
            f'an answer of {worst.task}, {worst.text[:40]!r}..., has {worst.tokens} tokens (too '
            f'long are answers of {", ".join(ending.task for ending in found)})'
        )
        if self.beyond:
            end = f'{self.model.describe_position()} positions end at {self.model.longest}'
            raise ValueError(f'{beyond} is True, but {told}; {end}')
        least: float = worst.tokens
        if not window.endswith('.tokens'):
            least = math.ceil(1000 * worst.tokens / self.run.train_length) / 1000
        raise ValueError(
            f'{window} stands for {self.window} tokens; {told}. Accepted: '
            f'--config.{window}={least:g} or more, or --config.{beyond}=True, which reads such '
            'answers whole'
        )

    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        loaded, generator = self._load(), self.generator(bench, variables)
        how |= {'window': self.window, 'bos': self.bos, 'beyond': self.beyond}
        model = harness.adapter(generator, self.tokenizer, **how)
        return harness.run(loaded, model, self.limit or None)

    def _load(self) -> dict[str, Any]:
        return harness.check(
            self.tasks,
            self.tokenizer,
            bos=self.bos,
            include=_folder(self.include),
            data=_folder(self.files),
            metadata=harness.metadata_of(self.metadata),
        )

    def rows(self, found: Records) -> list[TableRow]:
        mean = f'mean of {len(found.coordinates["task"])} tasks'
        *rows, average = self.mean_rows(found, 'task', mean, '%')
        groups = [
            average._replace(what=name, value=group['score'], samples=group['samples'])
            for name, group in found.attributes.get('groups', {}).items()
        ]
        return [*rows, *(groups or [average])]

    def programs(self, rows: Rows) -> Iterator[Program]:
        yield Scoring(self.model, self.extent, rows(self.extent, Scoring.rules))

    def measured_on(self, found: Records) -> tuple[str, str]:
        facts, samples = found.attributes, int(found['samples'].sum())
        how = f'{"after" if facts["bos"] else "without"} a BOS'
        if facts.get('beyond'):
            how += f', in windows of {facts["window"]:,} {facts["token"]}s, longer answers whole'
        return f'{samples:,} questions of {len(facts["metrics"])} tasks', how


def _files(section: Section, names: tuple[str, ...]) -> str:
    """The folder of the tasks' data, '' for the hub."""
    files, field = section.execution('files'), section.path('files')
    if not files:
        raise ValueError(
            f'{field} is empty: --config.{field}=FOLDER with the data of {section.path("tasks")} '
            f'({", ".join(names)}), which {USERS}; the layout is in '
            f'nope/evals/harness/published.py. {HUB!r} downloads them instead'
        )
    return '' if files == HUB else files


def _folder(path: str) -> pathlib.Path | None:
    return pathlib.Path(path) if path else None


def _content(path: str) -> Any:
    """Identity of the visible files in a folder; None for no folder."""
    folder = _folder(path)
    return folder and folders.identity('files', folder, harness.visible_files(folder))
