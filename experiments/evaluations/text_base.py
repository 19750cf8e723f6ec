"""Base classes of evaluations of text: documents, prompts, tasks, files of the user."""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from experiments.bench import Bench
from experiments.config import USERS, Section
from experiments.evaluations.base import EvalSpec, Rows, TableRow, measured_model, scaled
from experiments.evaluations.entry import CHAT_DATE, EvalEntry, Multiplier, count_of
from experiments.programs import Continuing, Program
from experiments.runs import Source, first_run
from experiments.scope import bos_of
from nope.data import Tokenizer, digest, load_tokenizer, prefix_of
from nope.data.chat import Chat, load_chat
from nope.data.sources import folders
from nope.evals import answers, batching
from nope.evals.generation import Generator
from nope.evals.samples import NAME, SampleLog
from nope.model import ModelConfig
from nope.positions import Position
from nope.records import Records
from nope.variables import Variables

TEXT_FIELDS = ('multiplier', 'multiplier_from', 'position')
ASKING_FIELDS = ('tokens', 'chat', *TEXT_FIELDS)  # of evaluations that ask questions
POINTS = 'points of 100'


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSpec(EvalSpec):
    """An evaluation of text: documents, prompts or tasks.

    bos: whether documents and prompts begin with the tokenizer's BOS.
    multiplier: None for the run's own lambda; a number or a grid's best for a uniform one.
    position: another position encoding than the run's. turns: digest of the chat template of
    questions, '' for none.
    """

    bos: bool
    multiplier: Multiplier = None
    position: Position | None = None
    turns: str = ''

    @abc.abstractmethod
    def found(self, bench: Bench, variables: Variables, **how: Any) -> Records:
        """The records. how: `log` of finished samples, and `progress`."""

    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = scaled(bench, self, self.multiplier, self.extent)
        log, progress = SampleLog(folder / NAME), bench.bar(self.title)
        return self.found(bench, variables, log=log, progress=progress), more

    @property
    def model(self) -> ModelConfig:
        return measured_model(self.run, self.multiplier, self.position)

    @property
    def trained_on(self) -> Source:
        """First run of the model's training; the text that is measured is named apart."""
        return first_run(self.run)

    @property
    def known(self) -> dict[str, Any]:
        return super().known | ({'chat': True} if self.turns else {})

    @property
    def own_text(self) -> bool:
        return False

    @property
    def tokenizer(self) -> Tokenizer:
        return load_tokenizer(self.run.data.tokenizer)

    @property
    def chat(self) -> Chat | None:
        """The template of `turns`."""
        folder = pathlib.Path(self.run.data.tokenizer).parent
        return load_chat(folder, CHAT_DATE) if self.turns else None

    def generator(self, bench: Bench, variables: Variables) -> Generator:
        return Generator(self.model, variables, bench.mesh, batch_tokens=bench.batch_tokens)

    def task_rows(self, found: Records) -> list[TableRow]:
        """A row of every task and of their mean at every length."""
        tasks = [*map(str, found.coordinates['task'])]
        mean = found['average'][:, None], found['samples'].sum(axis=1)[:, None]
        scores = np.concatenate([found['score'], mean[0]], axis=1)
        samples = np.concatenate([found['samples'], mean[1]], axis=1)
        return [
            TableRow(self.kind, task, length, float(scores[k, q]), POINTS, int(samples[k, q]))
            for q, task in enumerate([*tasks, f'mean of {len(tasks)} tasks'])
            for k, length in enumerate(found.coordinates['length'].tolist())
        ]

    def mean_rows(self, found: Records, name: str, mean: str, unit: str) -> list[TableRow]:
        """A row of every entry of a coordinate, and of their mean at the window."""
        names, samples = [*map(str, found.coordinates[name])], found['samples'].tolist()
        scores = [*found['score'].tolist(), found.attributes['average']]
        rows = zip([*names, mean], scores, [*samples, sum(samples)], strict=True)
        return [TableRow(self.kind, what, self.extent, x, unit, n) for what, x, n in rows]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LengthsOfTextSpec(TextSpec):
    """An evaluation of text at several lengths, in tokens."""

    lengths: tuple[int, ...]

    @property
    def extent(self) -> int:
        return max(self.lengths)


class FilesPlan(Protocol):
    """Questions made of the user's files. names: of the files, below their folder."""

    @property
    def names(self) -> list[str]: ...

    def check(self) -> None: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilesSpec(LengthsOfTextSpec):
    """An evaluation whose questions are made of files of the user.

    folder: of the files. fingerprint: of their content. limit: samples at most, 0 for all.

    layout: of the folder, for messages. around: whether lengths leave out the text around a prompt.
    """

    folder: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str = ''
    limit: int
    layout: ClassVar[str]
    around: ClassVar[bool] = False

    @classmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        section = cls.own_section(asked)
        lengths, common = asked.lengths(), of_text(asked, section)
        around = before_prompts(asked, common['bos']) if cls.around else 0
        asked.check_reach(common['position'], max(lengths) + around)
        folder = folder_of(section, cls.title, cls.layout)
        limit = count_of(section, 'limit', 0)
        spec = cls(lengths=lengths, folder=str(folder), limit=limit, **common)
        with section.reading('folder'):
            content = folders.identity(cls.kind, folder, spec.plan.names)
        if beside := spec.beside:
            asked.check_reach(common['position'], max(lengths) + around + beside)
        return dataclasses.replace(spec, fingerprint=digest.of_json([content, *ends_of(asked.run)]))

    @property
    def beside(self) -> int:
        """Tokens of a prompt and its answer that `lengths` leave out."""
        return 0

    @property
    @abc.abstractmethod
    def plan(self) -> FilesPlan: ...

    def check(self, bench: Bench) -> None:
        self.plan.check()


def of_text(asked: EvalEntry, section: Section, bos: bool | None = None) -> dict[str, Any]:
    """The shared fields of evaluations of text, from an entry and its section. bos: for a section
    without it."""
    chat = asked.chat()
    return {
        'run': asked.run,
        'bos': bos_of(section, asked.run.data.tokenizer) if bos is None else bos,
        'multiplier': asked.multiplier(),
        'position': asked.position(),
        'turns': '' if chat is None else digest.of_json([chat.source, chat.tokens, str(chat.date)]),
    }


def before_prompts(asked: EvalEntry, bos: bool) -> int:
    """Tokens around a prompt, which lengths do not count: a prefix, or the turns of a chat."""
    tokenizer, chat = load_tokenizer(asked.run.data.tokenizer), asked.chat()
    return len(prefix_of(tokenizer, bos)) if chat is None else chat.overhead(tokenizer)


def folder_of(section: Section, asked_by: str, files: str) -> pathlib.Path:
    """The section's `folder`. ValueError where it is empty. asked_by: the field, or the evaluation,
    that needs it. files: what it holds."""
    folder = section.execution('folder')
    if not folder:
        raise ValueError(
            f'{section.path("folder")} is empty: --config.{section.path("folder")}=FOLDER with the '
            f'files of {asked_by}, which {USERS} ({files})'
        )
    return pathlib.Path(folder)


def answering(spec: TextSpec, sizes: Iterable[tuple[int, int]], rows: Rows) -> Iterator[Program]:
    """Programs of greedy answers. sizes: tokens of a prompt, and of its answer."""
    for length, budget in sizes:
        options, prompt = answers.options(budget, spec.tokenizer), batching.padded_length(length)
        yield Continuing(spec.model, options, prompt, rows(prompt + budget, Continuing.rules))


def ends_of(run: Source) -> list[list[int]]:
    """Stop tokens of a run's tokenizer, for the identity of evaluations that generate: left out
    where EOS is the only one, so that such records keep their names."""
    tokenizer = load_tokenizer(run.data.tokenizer)
    return [] if tokenizer.stop_ids == (tokenizer.eos_id,) else [list(tokenizer.stop_ids)]


def after_bos(found: Records, what: str) -> str:
    """Words of a caption for how texts began; none where they had no prefix."""
    if found.attributes.get('chat'):
        return ', in turns of a chat'
    return f', each {what} after a BOS' if found.attributes['bos'] else ''
