"""Base class of evaluations: spec, fields, check, measurement, programs, words of captions."""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from experiments import facts
from experiments.bench import Bench
from experiments.config import Section
from experiments.evaluations.entry import EvalEntry, Multiplier
from experiments.programs import Program
from experiments.runs import Source, first_run
from experiments.specs import Spec, identifier
from nope import sharding
from nope.data import TaskData
from nope.evals import batching
from nope.model import ModelConfig
from nope.model.lam import Constant
from nope.positions import Position
from nope.records import Records
from nope.variables import Variables, lam_is_neutral

# Program's tokens of one row, and the rules it is sharded by -> rows of a batch.
Rows = Callable[[int, sharding.Rules], int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalSpec(Spec):
    """One evaluation of one model.

    A kind is a subclass, whose fields determine the result.

    run: the model. fields: of an entry of `evals`, besides `kind` and `run`. of_tasks: whether the
    models are those of synthetic tasks, None for any. of_encoders: whether they may be encoders.

    title: of the progress bar.

    `nope evaluate` reads the others.

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
    of_encoders: ClassVar[bool] = False
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
    """Variables of a run under a uniform multiplier, None for its own lambda, and facts of their
    lambda at that length.

    step: of its training, None for the last."""
    chosen = bench.best_multiplier(multiplier)
    variables = bench.scaled(spec.run, step, chosen)
    neutral = lam_is_neutral(spec.model, variables, length)
    return variables, facts.describe_lam(spec.run, chosen, neutral)


def most_rows(batch_tokens: int, mesh: Any) -> Rows:
    """Rows of a batch on a mesh."""

    def rows(length: int, rules: sharding.Rules = sharding.RULES) -> int:
        return batching.most_rows(batch_tokens, length, sharding.batch_parts(mesh, rules))

    return rows
