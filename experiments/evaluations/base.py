"""Base class of evaluations: spec, fields, check, measurement, programs, words of captions."""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from experiments import facts
from experiments.bench import Bench
from experiments.config import USERS, Section
from experiments.models import position_for, with_position
from experiments.programs import Continuing, Program
from experiments.runs import (
    MultiplierChoice,
    RunSpec,
    Source,
    check_same_gates,
    check_same_table,
    tasks,
)
from experiments.scope import Scope, bos_of
from experiments.specs import Spec, identifier
from nope import sharding
from nope.data import TaskData, Tokenizer, digest, load_tokenizer, prefix_of
from nope.data.chat import Chat, load_chat
from nope.data.sources import folders
from nope.evals import answers, batching
from nope.evals.generation import Generator
from nope.evals.samples import NAME, SampleLog
from nope.model import ModelConfig
from nope.model.lam import Constant
from nope.positions import Position
from nope.records import Records
from nope.variables import Variables, lam_is_neutral

T = TypeVar('T', int, None)
Multiplier = float | MultiplierChoice | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalSpec(Spec):
    """One evaluation of one model.

    A kind is a subclass, whose fields determine the result.

    run: the model. fields: of an entry of `evals`, besides `kind` and `run`. of_tasks: whether the
    models are those of synthetic tasks, None for any.

    title: of the progress bar.

    The others are literals, which `nope evaluate` reads before JAX is imported.

    section: of the config, by default named as the kind.
    defaults: that section where a config has none. Its fields are the flags of the command.
    command: its name there, '' where it has none. `NAME:FOLDER` takes the section's folder, and
    `NAME:PATH` text in place of a corpus.
    flags: those with another name than their field.
    """

    run: Source
    kind: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    of_tasks: ClassVar[bool | None] = False
    title: ClassVar[str] = ''
    section: ClassVar[str] = ''
    defaults: ClassVar[Mapping[str, Any] | None] = None
    command: ClassVar[str] = ''
    flags: ClassVar[Mapping[str, str]] = {}
    room = 'records'
    finished = 'records.json'

    @classmethod
    @abc.abstractmethod
    def from_entry(cls, asked: EvalEntry) -> Self:
        """The spec of an entry. ValueError or FileNotFoundError, naming the field, for values that
        do not fit, files that are missing, and lengths that the model is not defined for."""

    @property
    @abc.abstractmethod
    def model(self) -> ModelConfig:
        """The run's model, with the multiplier and the position encoding it is measured with."""

    @property
    @abc.abstractmethod
    def extent(self) -> int:
        """Tokens of the longest sequence, which the records' folder is named after."""

    @abc.abstractmethod
    def check(self, bench: Bench) -> None:
        """Raises what the measurement would raise about text and files, before any training."""

    @abc.abstractmethod
    def measure(self, bench: Bench, folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        """The records, and attributes to add to them. folder: for what is kept on the way."""

    @abc.abstractmethod
    def programs(self, rows: Rows) -> Iterator[Program]:
        """Programs that it runs on the devices, for compilation ahead of time."""

    @abc.abstractmethod
    def measured_on(self, found: Records) -> tuple[str, str]:
        """Object and manner of the measurement, as captions say them: 'windows of 256 bytes',
        'test split'. found: the records with all their attributes."""

    def rows(self, found: Records) -> list[TableRow]:
        """Its lines of the table that the command prints. found: its records."""
        raise NotImplementedError(f'{self.kind} has no table')

    @classmethod
    def own_section(cls, asked: EvalEntry) -> Section:
        """The kind's section of the config, with the entry's changes."""
        return asked.section(cls.section or cls.kind, cls.defaults)

    @property
    def reads(self) -> Mapping[int, int] | None:
        """Tokens of a sequence -> how many of these it reads, at most; None where only the files
        of a data set tell."""
        return None

    @property
    def known(self) -> dict[str, Any]:
        """Attributes of its records that are known before it is measured."""
        return facts.of_evaluation(
            self.run, self.trained_on, self.model, self.measured_step, self.read_split
        )

    @property
    def measured_step(self) -> int | None:
        """The step of the run that is measured; None for the last."""
        return None

    @property
    def read_split(self) -> str | None:
        """The split of the data that is read; None where there is none."""
        return None

    @property
    def trained_on(self) -> Source:
        """The run whose data captions name."""
        return self.run

    @property
    def task_data(self) -> TaskData:
        """Task that the model was trained on, also where lambda was searched on another."""
        found = first_run(self.run).data
        assert isinstance(found, TaskData)  # `of_tasks` says so
        return found

    @property
    def own_text(self) -> bool:
        """True where `measured_on` names the text that the model was trained on."""
        return True

    def slug(self) -> str:
        return f'{self.kind}-{self.extent}-{identifier(self)}'

    def describe(self) -> str:
        return f'measure  {self.slug()}'


class TableRow(NamedTuple):
    """A line of a table for people. samples: questions, windows or texts behind the value. tokens:
    scored ones; None for scored answers."""

    evaluation: str
    what: str
    length: int
    value: float
    unit: str
    samples: int
    tokens: int | None = None


# Program's tokens of one row, and the rules it is sharded by -> rows of a batch.
Rows = Callable[[int, sharding.Rules], int]


@dataclasses.dataclass(frozen=True)
class EvalEntry:
    """An entry of `evals`, and what it may ask for.

    find: the evaluation that chooses a multiplier, by its name and its field. find_run: another run
    by name and field, so many places further in the config's seeds.
    """

    entry: Section
    run: Source
    scope: Scope
    find: Callable[[str, str], MultiplierChoice]
    find_run: Callable[[str, str, int], Source]

    @property
    def where(self) -> str:
        return self.entry.name

    @property
    def train_length(self) -> int:
        """L of the model, which lengths are multiples of."""
        return self.run.train_length

    def section(self, name: str, default: Mapping[str, Any] | None = None) -> Section:
        """A section of the config with the entry's changes."""
        return self.scope.section(name, self.entry, default)

    def times(self, field: str, default: float) -> int:
        """Tokens of a multiple of L."""
        value = self.entry.get(field, default)
        return self.scope.times(value, self.train_length, self.entry.path(field))

    def lengths(self, field: str = 'times') -> tuple[int, ...]:
        """Tokens of several multiples of L, or `tokens` as they are."""
        if field == 'times' and 'tokens' in self.entry:
            given = self.entry.several('tokens', 'lengths in tokens')
            if not all(type(length) is int and length > 0 for length in given):
                raise self.entry.error('tokens', 'accepted: whole numbers above 0, as in (4096,)')
            return given
        where = self.entry.path(field)
        several = self.entry.several(field, 'multiples of L')
        lengths = tuple(self.scope.times(t, self.train_length, where) for t in several)
        if len(set(lengths)) < len(lengths):
            raise self.entry.error(field, f'some are the same number of tokens: {lengths}')
        return lengths

    def length(self) -> int:
        """Tokens of the one length: `target`, or a multiple of L, or the longest of `tokens`."""
        if 'tokens' in self.entry:
            return max(self.lengths())
        return self.scope.length_of(self.entry, self.train_length)

    def chat(self) -> Chat | None:
        """The chat template beside the run's tokenizer, where the entry asks for `chat`."""
        if not self.entry.get('chat'):
            return None
        file = pathlib.Path(self.run.data.tokenizer)
        if not file.is_file():
            raise self.entry.error('chat', f'no chat template is beside the tokenizer {file}')
        return load_chat(file.parent)

    def multiplier(self) -> Multiplier:
        """`multiplier`, or the best of the evaluation that `multiplier_from` names."""
        entry = self.entry
        if entry.get('multiplier_from'):
            self.check_no_law('multiplier_from')
            return self.find(entry['multiplier_from'], entry.path('multiplier_from'))
        if entry.get('multiplier') is not None:
            self.check_no_law('multiplier')
        return entry.finite('multiplier', positive=True) if 'multiplier' in entry else None

    def check_no_law(self, field: str) -> None:
        """ValueError for uniform multipliers on a model whose weights were trained under a law,
        which they would take the place of."""
        law = first_run(self.run).model.lam
        if isinstance(first_run(self.run), RunSpec) and law != Constant():
            raise self.entry.error(
                field,
                f'the model was trained with lambda of the form {type(law).__name__}, which a '
                'uniform multiplier would take the place of',
            )

    def position(self) -> Position | None:
        """Another position encoding than the run was trained with."""
        if 'position' not in self.entry:
            return None
        field, weights = self.entry.path('position'), tasks.trained_weights(self.run)
        length = tasks.length_read(weights.data, weights.typed.task, self.train_length)
        found = position_for(self.entry['position'], self.run.model, length, field)
        with_position(self.run.model, found, self.entry, self.run.searched)
        return found

    def window(self) -> int:
        """`window` in multiples of L; without it the length that the model was tuned at, if it
        was, also under a law or another change, else L."""
        if 'window' in self.entry:
            return self.times('window', 1.0)
        return self.run.tuned_length or self.train_length

    def check_reach(self, position: Position | None, length: int) -> None:
        """ValueError where sequences are longer than the position encoding is defined for."""
        model = self.run.model
        if position is not None:
            model = with_position(model, position, self.entry, self.run.searched)
        check_same_table(model, self.run.model)
        check_same_gates(model, self.run.model)
        if model.longest is not None and length > model.longest:
            raise ValueError(
                f'{self.where}: sequences of {length} tokens; {model.describe_position()} '
                f'positions end at {model.longest}'
            )


def first_run(run: Source) -> Source:
    """The run that the model's training began with."""
    while run.init is not None:
        run = run.init
    return run


def uniform_form(model: ModelConfig) -> ModelConfig:
    """The same model with constant lambda, for uniform multipliers."""
    return dataclasses.replace(model, lam=Constant())


def measured_model(run: Source, multiplier: Any, position: Position | None) -> ModelConfig:
    """A run's model under a uniform multiplier (None: its own lambda) and another position
    encoding (None: its own)."""
    model = run.model if multiplier is None else uniform_form(run.model)
    return model if position is None else model.with_position(position)


def scaled(
    bench: Bench, spec: EvalSpec, multiplier: Multiplier, length: int, step: int | None = None
) -> tuple[Variables, dict[str, Any]]:
    """Variables of a run under a uniform multiplier, None for its own lambda, and what to say of
    their lambda at that length. step: of its training, None for the last."""
    chosen = bench.best_multiplier(multiplier)
    variables = bench.scaled(spec.run, step, chosen)
    neutral = lam_is_neutral(spec.model, variables, length)
    return variables, facts.describe_lam(spec.run, chosen, neutral)


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
    def own_text(self) -> bool:
        return False

    @property
    def tokenizer(self) -> Tokenizer:
        return load_tokenizer(self.run.data.tokenizer)

    @property
    def chat(self) -> Chat | None:
        """The template of `turns`."""
        return load_chat(pathlib.Path(self.run.data.tokenizer).parent) if self.turns else None

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class LengthsOfTextSpec(TextSpec):
    """An evaluation of text at several lengths, in tokens."""

    lengths: tuple[int, ...]

    @property
    def extent(self) -> int:
        return max(self.lengths)


class FilesPlan(Protocol):
    """What an evaluation of the user's files asks. names: of the files, below their folder."""

    @property
    def names(self) -> list[str]: ...

    def check(self) -> None: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilesSpec(LengthsOfTextSpec):
    """An evaluation whose questions are made of files of the user.

    folder: of the files. fingerprint: of their content. limit: samples at most, 0 for all. layout:
    of the folder, for messages. around: whether lengths leave out what stands around a prompt.
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
        return dataclasses.replace(spec, fingerprint=digest.of_json([content, *ends_of(asked.run)]))

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
        'turns': '' if chat is None else digest.of_json([chat.source, chat.tokens]),
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


def count_of(section: Section, field: str, default: T) -> int | T:
    """A whole number above 0, or the default where the field is None or left out."""
    left_out = field not in section or section.optional(field) is None
    return default if left_out else section.at_least(field, 1)


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
    return f', each {what} after a BOS' if found.attributes['bos'] else ''


TEXT_FIELDS = ('multiplier', 'multiplier_from', 'position')
ASKING_FIELDS = ('tokens', 'chat', *TEXT_FIELDS)  # of evaluations that ask questions
POINTS = 'points of 100'


def most_rows(batch_tokens: int, mesh: Any) -> Rows:
    """Rows of a batch on a mesh."""

    def rows(length: int, rules: sharding.Rules = sharding.RULES) -> int:
        return batching.most_rows(batch_tokens, length, sharding.batch_parts(mesh, rules))

    return rows
