"""What an experiment is: frozen values for runs and what they need, and their identity.

A run is whatever ends in a checkpoint: pre-training, or fine-tuning or a search of lambda on top
of another run or of an imported model. An evaluation turns a model into records
(`experiments.evaluations`; the grid of scales, which a search may begin from, is here). All are
identified by a hash of what determines their result, so that figures share them and nothing is
done twice.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from typing import Any

from nope import data
from nope.data import DataConfig
from nope.evals.scale_grid import Grid
from nope.identity import digest, execution_fields, plain
from nope.interop import Described, Export, tokenizer_in
from nope.model import ModelConfig
from nope.model.lam import Constant
from nope.training.config import TrainConfig

# Raise when code changes what a run or an evaluation computes from the same spec.
VERSION = 1


@dataclasses.dataclass(frozen=True)
class Windows:
    """Evaluation windows: the last `length` tokens of blocks of `block` tokens."""

    length: int
    block: int
    count: int
    split: str
    seed: int

    def __post_init__(self) -> None:
        if not 1 <= self.length <= self.block:
            raise ValueError(
                f'evaluation length is {self.length}; accepted is 1 to the block, {self.block}'
            )
        if self.count < 1:
            raise ValueError(f'evaluation.windows is {self.count}; it must be at least 1')


@dataclasses.dataclass(frozen=True)
class ImportSpec:
    """A model of another library, read from a Hugging Face directory.

    path: where it is. fingerprint: which it is (`nope.interop.fingerprint`). data, seed: of the
    windows it is measured on. train_length: the length it was trained at. dtype: of its tensors.
    """

    path: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    model: ModelConfig
    data: DataConfig
    seed: int
    train_length: int
    dtype: str
    searches = searched = False
    init = None

    @property
    def imported(self) -> ImportSpec:
        return self

    @property
    def origin(self) -> str:
        """The directory's name."""
        return pathlib.Path(self.path).resolve().name

    def slug(self) -> str:
        """Readable folder name that is unique to the model."""
        shape = f'{self.model.layers}x{self.model.width}'
        return f'import-{_slugged(self.model)}-{shape}-{identifier(self)}'


@dataclasses.dataclass(frozen=True)
class RunSpec:
    """One training.

    init: the run or imported model whose parameters are taken over; None for fresh ones.
    lam_start: coefficient every head starts from, or the grid whose best scale it is;
        None for the form's neutral one.
    seed: of the fresh parameters. data_seed: of the order of examples.
    """

    model: ModelConfig
    data: DataConfig
    train: TrainConfig
    seed: int
    data_seed: int
    train_length: int
    init: RunSpec | ImportSpec | None = None
    lam_start: float | GridSpec | None = None

    def __post_init__(self) -> None:
        if self.init is not None:
            _check_same_model(self.model, self.init.model)
        bound, start = self.train.optimizer.bound, self.lam_start
        if bound is not None and isinstance(start, float) and start < bound:
            raise ValueError(
                f'search.start is {start}, below search.bound, {bound}; '
                'the search would begin outside its own constraint'
            )
        if bound is not None and isinstance(start, GridSpec) and start.grid.high < bound:
            raise ValueError(
                f'search.bound is {bound}, above every scale of the grid that search.start_from '
                f'names, up to {start.grid.high}; the search would begin outside its constraint'
            )

    @property
    def searches(self) -> bool:
        return self.train.optimizer.trains == 'lam'

    @property
    def searched(self) -> bool:
        """Whether lambda was searched, here or in what it starts from."""
        return self.searches or (self.init is not None and self.init.searched)

    @property
    def imported(self) -> ImportSpec | None:
        """The imported model that it starts from, at any remove."""
        return None if self.init is None else self.init.imported

    @property
    def fine_tunes(self) -> bool:
        return self.init is not None and not self.searches

    def slug(self) -> str:
        """Readable folder name that is unique to the run."""
        if self.searches:
            form = type(self.model.lam).__name__.lower()
            kind = f'search-{form}-{"-".join(map(str, self.train.lengths))}'
        else:
            kind = f'{_slugged(self.model)}-{self.train.block}'
            kind = f'tuned-{kind}' if self.fine_tunes else kind
        shape = f'{self.model.layers}x{self.model.width}'
        return f'{kind}-{shape}-seed{self.seed}-{identifier(self)}'


Source = RunSpec | ImportSpec  # where a model comes from


@dataclasses.dataclass(frozen=True)
class GridSpec:
    """UniformScale on a grid (see `nope.evals.scale_grid`). step: None for the last."""

    run: Source
    windows: Windows
    grid: Grid
    step: int | None = None
    kind = 'scale_grid'

    @property
    def extent(self) -> int:
        return self.windows.length

    @property
    def model(self) -> ModelConfig:
        return uniform_form(self.run.model)


@dataclasses.dataclass(frozen=True)
class ExportSpec:
    """A model as a Hugging Face directory (see `nope.interop.save`).

    name: of the directory.
    """

    name: str
    run: Source
    export: Export

    @property
    def tokenizer(self) -> str:
        """Whose files go with the weights: those of an imported model, else of the data."""
        imported = self.run.imported
        used = self.run.data.tokenizer
        if imported is not None and tokenizer_in(pathlib.Path(imported.path)) == used:
            return imported.path
        return used

    @property
    def described(self) -> Described:
        """The model, and what a config.json says of it."""
        tokenizer = data.load_tokenizer(self.run.data.tokenizer)
        return Described(
            self.run.model,
            self.run.train_length,
            self.export.dtype,
            tokenizer.bos_id,
            tokenizer.eos_id,
        )

    def slug(self) -> str:
        return f'{self.name}-{identifier(self)}'


def needs(spec: Any) -> tuple[Any, ...]:
    """What has to be there before a run or an evaluation can be made, without what that needs in
    turn: the runs, imported models and grids among its fields."""
    values = (getattr(spec, field.name) for field in dataclasses.fields(spec))
    parts = (part for v in values for part in (v if isinstance(v, tuple) else (v,)))
    return tuple(part for part in parts if isinstance(part, RunSpec | ImportSpec | GridSpec))


def identifier(spec: Any) -> str:
    """Twelve hex digits of the hash of `identity(spec)`."""
    return digest(identity(spec))


@functools.lru_cache(maxsize=1024)
def identity(spec: Any) -> dict[str, Any]:
    """JSON-able content of a run, an evaluation or an export: what determines its result and
    nothing else."""
    return {'version': VERSION, **plain(spec, {DataConfig: data.identity})}


def uniform_form(model: ModelConfig) -> ModelConfig:
    """The same model with constant lambda, for uniform scales."""
    return dataclasses.replace(model, lam=Constant())


def _slugged(model: ModelConfig) -> str:
    """'nope', 'rotary', 'alibi', 'rotary-nope': the kinds of layers, for a folder's name."""
    kinds = (kind.position.describe().split(',')[0] for kind in model.kinds)
    names = ('nope' if kind == 'none' else kind for kind in kinds)
    return '-'.join(dict.fromkeys(names)).lower().replace(' ', '-')


def check_same_table(model: ModelConfig, init: ModelConfig) -> None:
    """ValueError where a model would need another learned table of positions than it has."""
    if model.table != init.table:
        raise ValueError(
            f'{model.describe_position()} positions and those it was trained with, '
            f'{init.describe_position()}, differ in a learned table, which cannot be exchanged'
        )


def _check_same_model(model: ModelConfig, init: ModelConfig) -> None:
    """A later run may have another lambda and other position encodings, nothing else."""
    check_same_table(model, init)
    free = {'position', 'pattern', 'window', 'lam', 'lam_layers', 'dtype', 'vocab_size'}
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
