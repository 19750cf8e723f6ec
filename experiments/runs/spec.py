"""Runs: a training, a search of lambda or a fine-tuning, and models that are imported.

A later run starts from another run or from an imported model (`init`): with a search of lambda,
with all its parameters trained on, under a law of lambda that is given, or at another softmax
temperature.
"""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from experiments.specs import Spec, identifier
from nope import sharding
from nope.data import DataConfig, RunData, TaskData
from nope.heads import silenced
from nope.identity import execution_fields
from nope.model import ModelConfig
from nope.model.lam import Coefficient, Law
from nope.positions import NoPE
from nope.training.config import Compute, Earlier, TrainConfig
from nope.variables import Variables, lam_is_neutral, lam_of, with_lam, with_uniform_lam

# Why a directory's model takes no other lambda.
OWN = 'the model has multipliers of its own, which others would take the place of'


@dataclasses.dataclass(frozen=True)
class Typed:
    """Paths of a run's fields as they were typed, for errors that come after it was made.

    lengths: of the training sequences. attention, pattern: of the model, or of the one it starts
    from. task: of the synthetic task. Specs that were typed in several places are equal all the
    same.
    """

    lengths: str = 'train.length'
    attention: str = 'model.attention'
    pattern: str = 'model.pattern'
    task: str = 'task'


@dataclasses.dataclass(frozen=True)
class ImportSpec(Spec):
    """A model of another library, read from a Hugging Face directory.

    path: of its directory. fingerprint: of its content (`interop.fingerprint`). data, seed: of the
    windows that measure it. train_length: as it was trained. dtype: of its tensors. searched:
    whether it brings multipliers of its own.
    """

    path: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    model: ModelConfig
    data: DataConfig
    seed: int
    train_length: int
    dtype: str
    searched: bool = dataclasses.field(default=False, metadata={'identity': False})
    typed: Typed = dataclasses.field(default=Typed(), compare=False, metadata={'identity': False})
    searches: ClassVar[bool] = False
    fine_tunes: ClassVar[bool] = False
    tuned_length: ClassVar[None] = None
    init: ClassVar[None] = None

    @property
    def imported(self) -> ImportSpec:
        return self

    @property
    def unchanged(self) -> ImportSpec:
        return self

    @property
    def origin(self) -> str:
        """The directory's name."""
        return pathlib.Path(self.path).resolve().name

    def slug(self) -> str:
        shape = f'{self.model.layers}x{self.model.width}'
        return f'import-{_slugged(self.model)}-{shape}-{identifier(self)}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointSpec(ImportSpec):
    """A checkpoint that a command line names: a Hugging Face directory, or the folder of a run.

    train_length: 0 where nothing says it. step: of a run's training, None for the last. read: gives
    its variables, on the mesh of the evaluations.
    """

    step: int | None = None
    read: Callable[[], Variables] = dataclasses.field(compare=False, metadata={'identity': False})


class MultiplierChoice(Spec):
    """An evaluation whose records name a best uniform multiplier."""

    @property
    @abc.abstractmethod
    def highest(self) -> float:
        """The highest multiplier that it may choose."""


class HeadScores(Spec):
    """An evaluation that scores every head by how near its attended tokens are.

    words: what the score is, for captions.
    """

    run: Source

    @property
    @abc.abstractmethod
    def words(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class RunSpec(Spec):
    """One training.

    init: the run or imported model whose parameters are taken over; None for fresh ones.

    lam_start: coefficient every head starts from (several where the law has them), or the
        evaluation whose best multiplier it is; None for the law's neutral one.

    seed: of the fresh parameters. data_seed: of the order of examples.
    train_length: L, of the pre-training that it goes back to.

    order_from: before training, puts the heads of every layer in the falling order of their scores;
        None to leave them as they are.

    earlier: the model of the first steps, where the encoding of positions was dropped on the way.
    """

    model: ModelConfig
    data: RunData
    train: TrainConfig
    seed: int
    data_seed: int
    train_length: int
    init: RunSpec | ImportSpec | ChangedSpec | None = None
    lam_start: Coefficient | MultiplierChoice | None = None
    typed: Typed = dataclasses.field(default=Typed(), compare=False, metadata={'identity': False})
    order_from: HeadScores | None = None
    earlier: Earlier | None = None
    room = 'runs'
    finished = 'done.json'

    def __post_init__(self) -> None:
        if self.init is not None:
            _check_same_model(self.model, self.init.model, new_gates=self.fine_tunes)
        position_range = self.model.position_range
        if position_range is not None and self.train.block > position_range:
            raise ValueError(
                f'{self.typed.lengths} makes sequences of {self.train.block} tokens; the positions '
                f'of the model lie below {position_range}'
            )
        if position_range is not None and 'positions' in self.data.arrays:
            raise ValueError(
                "data.documents is 'apart', where positions begin anew; those of the model are "
                f'random ones below {position_range}'
            )

    @property
    def searches(self) -> bool:
        return self.train.optimizer.trains == 'lam'

    @property
    def searched(self) -> bool:
        """True where lambda was searched, here or in what it starts from."""
        return self.searches or (self.init is not None and self.init.searched)

    @property
    def imported(self) -> ImportSpec | None:
        """The imported model that it starts from, at any remove."""
        return None if self.init is None else self.init.imported

    @property
    def unchanged(self) -> RunSpec:
        return self

    @property
    def fine_tunes(self) -> bool:
        return self.init is not None and not self.searches

    @property
    def tuned_length(self) -> int | None:
        """Longest sequences of a search or of fine-tuning, in tokens; None for pre-training."""
        return None if self.init is None else self.train.block

    def compute(self, compute: Compute) -> Compute:
        """Means of its execution. A given number of micro-batches holds for pre-training. Where it
        is above 1, memory is short: searches and fine-tuning, of other batches, find their own."""
        if self.init is None or compute.accumulate is None:
            return compute
        return dataclasses.replace(compute, accumulate=1 if compute.accumulate == 1 else None)

    def slug(self) -> str:
        if self.searches:
            lengths = '-'.join(map(str, self.train.lengths))
            optimizer = self.train.optimizer
            by = '' if optimizer.entropy_length is None else 'entropy-'
            by = f'tied-{by}' if optimizer.tied else by
            kind = f'search-{by}{self.model.lam.slug}-{lengths}'
        else:
            law = '' if self.init or self.lam_start is None else f'-{self.model.lam.slug}'
            dropped = '' if self.earlier is None else f'{_slugged(self.earlier.model)}-dropped-'
            kind = f'{dropped}{_slugged(self.model)}{law}-{self.train.block}'
            kind = f'tuned-{kind}' if self.fine_tunes else kind
            kind = f'{self.data.task.name}-{kind}' if isinstance(self.data, TaskData) else kind
        shape = f'{self.model.layers}x{self.model.width}'
        return f'{kind}-{shape}-seed{self.seed}-{identifier(self)}'

    def describe(self) -> str:
        return f'train    {self.slug()} ({self.train.tokens:,} tokens)'


@dataclasses.dataclass(frozen=True)
class ChangedSpec(Spec):
    """A trained model with a change of how it computes: nothing is trained, nothing is kept.

    init: the run or imported model that has the parameters.
    """

    init: RunSpec | ImportSpec | ChangedSpec
    searches: ClassVar[bool] = False
    fine_tunes: ClassVar[bool] = False

    @property
    def model(self) -> ModelConfig:
        """The model with the change."""
        return self.init.model

    @property
    def searched(self) -> bool:
        """True where lambda was searched or is given."""
        return self.init.searched

    def changed(self, variables: Variables) -> Variables:
        """The variables of `init` with the change."""
        return variables

    @property
    def unchanged(self) -> RunSpec | ImportSpec:
        """The run or imported model, without this change and those below it."""
        return self.init.unchanged

    @property
    def tuned_length(self) -> int | None:
        return self.init.tuned_length

    @property
    def data(self) -> RunData:
        return self.init.data

    @property
    def seed(self) -> int:
        return self.init.seed

    @property
    def train_length(self) -> int:
        return self.init.train_length

    @property
    def typed(self) -> Typed:
        return self.init.typed

    @property
    def imported(self) -> ImportSpec | None:
        return self.init.imported


@dataclasses.dataclass(frozen=True)
class LawSpec(ChangedSpec):
    """A model under a law of lambda with a given coefficient. law, coefficient: of every head."""

    law: Law
    coefficient: Coefficient

    @property
    def model(self) -> ModelConfig:
        return dataclasses.replace(self.init.model, lam=self.law)

    @property
    def searched(self) -> bool:
        return True  # its lambda is not the neutral one

    def changed(self, variables: Variables) -> Variables:
        return with_uniform_lam(variables, self.coefficient, self.law.numbers)

    def slug(self) -> str:
        return f'law-{self.law.slug}-seed{self.seed}-{identifier(self)}'


@dataclasses.dataclass(frozen=True)
class TemperatureSpec(ChangedSpec):
    """A model at another softmax temperature, one without weights."""

    temperature: str

    @property
    def model(self) -> ModelConfig:
        return dataclasses.replace(self.init.model, temperature=self.temperature)

    def slug(self) -> str:
        return f'temperature-{self.temperature}-seed{self.seed}-{identifier(self)}'


@dataclasses.dataclass(frozen=True)
class SilencedSpec(ChangedSpec):
    """A model some of whose heads add nothing to the residual stream.

    heads: layer and head of each, both from 0, in ascending order.
    """

    heads: tuple[tuple[int, int], ...]

    def changed(self, variables: Variables) -> Variables:
        silent_LN = np.zeros((self.model.attention_layers, self.model.heads), bool)
        layers, heads = np.array(self.heads).T
        silent_LN[np.searchsorted(self.model.attending, layers), heads] = True
        return {**variables, 'params': silenced(self.model, variables['params'], silent_LN)}

    def slug(self) -> str:
        return f'silenced-{len(self.heads)}-heads-seed{self.seed}-{identifier(self)}'


@dataclasses.dataclass(frozen=True)
class MultipliedSpec(ChangedSpec):
    """A model with neutral lambda whose heads have multipliers [layers][heads]."""

    multipliers: tuple[tuple[float, ...], ...]

    @property
    def searched(self) -> bool:
        return True  # its lambda is not the neutral one

    def changed(self, variables: Variables) -> Variables:
        if not lam_is_neutral(self.model, variables):
            raise ValueError(
                f'{OWN}; --scale and --lam are for the model that they were searched on'
            )
        lam_LN = np.asarray(self.multipliers, np.float32)
        return with_lam(variables, sharding.put(lam_LN, lam_of(variables).sharding))

    def slug(self) -> str:
        return f'multiplied-seed{self.seed}-{identifier(self)}'


Source = RunSpec | ImportSpec | ChangedSpec  # where a model comes from


def first_run(run: Source) -> Source:
    """The run that the model's training began with."""
    while run.init is not None:
        run = run.init
    return run


def text_of(run: Source) -> DataConfig:
    """The text that a model was trained on; ValueError for one that was trained on a task."""
    if not isinstance(run.data, DataConfig):
        raise ValueError(f'{run.slug()} was trained on {run.data.describe()}, which is no text')
    return run.data


def _slugged(model: ModelConfig) -> str:
    """'nope', 'rope', 'alibi', 'rope-nope': the kinds of layers, for a folder's name."""
    kinds = [kind for kind in model.kinds if kind.attends]
    positions = (kind.position.describe().split(',')[0] for kind in kinds)
    names = ['nope' if position == 'none' else position for position in positions]
    names += [k.mixer.name for k in model.kinds if k.mixer is not None and not k.attends]
    if not model.causal:
        names.insert(0, 'encoder')
    if model.temperature != 'none':
        names.append(f'temperature-{model.temperature}')
    if model.weights != 'softmax':
        names.append(model.weights.replace('_', '-'))
    return '-'.join(dict.fromkeys(names)).lower().replace(' ', '-')


def check_same_gates(model: ModelConfig, init: ModelConfig) -> None:
    """ValueError where a model would need other forget gates than it has."""
    if model.gate != init.gate:
        raise ValueError(
            f'{model.describe_position()} positions and those it was trained with, '
            f'{init.describe_position()}, differ in forget gates, which cannot be exchanged'
        )


def check_same_table(model: ModelConfig, init: ModelConfig) -> None:
    """ValueError where a model would need another learned table of positions than it has."""
    if model.table != init.table:
        raise ValueError(
            f'{model.describe_position()} positions and those it was trained with, '
            f'{init.describe_position()}, differ in a learned table, which cannot be exchanged'
        )


def adds_table(model: ModelConfig, init: ModelConfig) -> bool:
    """Whether a model has a learned table of positions that it gets as zeros, which change nothing,
    where `init` has no position encoding."""
    without = all(kind.position == NoPE() for kind in init.kinds)
    return without and model.table is not None and model.table.neutral


def _check_same_model(model: ModelConfig, init: ModelConfig, *, new_gates: bool) -> None:
    """A later run may have another lambda and other position encodings, nothing else. new_gates:
    whether a model without forget gates may get them."""
    if init.gate is not None or not new_gates:
        check_same_gates(model, init)
    if not adds_table(model, init):
        check_same_table(model, init)
    free = {
        'position',
        'position_range',
        'pattern',
        'window',
        'lam',
        'lam_layers',
        'dtype',
        'vocab_size',
    }
    for field in dataclasses.fields(ModelConfig):
        name = field.name
        if name in free | execution_fields(ModelConfig):
            continue
        if getattr(model, name) != getattr(init, name):
            raise ValueError(
                f'model.{name} is {getattr(model, name)}; the run it starts from has '
                f'{getattr(init, name)}'
            )
    if model.vocab_size != init.vocab_size:
        raise ValueError(
            f'data.tokenizer has {model.vocab_size} tokens; the run it starts from was trained '
            f'with {init.vocab_size}'
        )
