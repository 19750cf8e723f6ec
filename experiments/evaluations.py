"""Evaluations: each turns a model into records.

Those of windows read cut text of the model's own data; those of text read documents, prompts or
tasks. `extent` is the number of tokens that an evaluation's folder is named after.
"""

from __future__ import annotations

import dataclasses

from experiments.spec import GridSpec, Source, Windows, identifier, uniform_form
from nope.data import DataConfig
from nope.identity import added_later
from nope.model import ModelConfig
from nope.positions import Position

PASSKEY = 'passkey'


@dataclasses.dataclass(frozen=True)
class PositionsSpec:
    """Loss and entropy by position.

    scale: None for the run's own lambda; a number or a grid's best for a uniform one.
    position: another position encoding than the run was trained with.
    """

    run: Source
    windows: Windows
    scale: float | GridSpec | None = None
    position: Position | None = None
    step: int | None = None
    kind = 'positions'

    @property
    def extent(self) -> int:
        return self.windows.length

    @property
    def model(self) -> ModelConfig:
        """The run's, with the scale and the position encoding it is measured with."""
        model = self.run.model if self.scale is None else uniform_form(self.run.model)
        if self.position is not None:
            model = model.with_position(self.position)
        return model


@dataclasses.dataclass(frozen=True)
class LengthsSpec:
    """Loss against window length.

    scales: a grid for every length, or none for the run's own lambda. position: another position
    encoding than the run was trained with.
    """

    run: Source
    windows: Windows
    lengths: tuple[int, ...]
    scales: tuple[GridSpec, ...] = ()
    position: Position | None = added_later(None)
    kind = 'lengths'

    @property
    def extent(self) -> int:
        return self.windows.length

    @property
    def model(self) -> ModelConfig:
        """The run's, with the scales and the position encoding it is measured with."""
        model = uniform_form(self.run.model) if self.scales else self.run.model
        return model if self.position is None else model.with_position(self.position)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _OfText:
    """What evaluations of text share.

    scale: None for the run's own lambda; a number or a grid's best for a uniform one.
    position: another position encoding than the run was trained with. bos: whether documents and
    prompts begin with the tokenizer's begin mark.
    """

    run: Source
    bos: bool
    scale: float | GridSpec | None = None
    position: Position | None = None
    step = None

    @property
    def model(self) -> ModelConfig:
        """The run's, with the scale and the position encoding it is measured with."""
        model = self.run.model if self.scale is None else uniform_form(self.run.model)
        return model if self.position is None else model.with_position(self.position)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerplexitySpec(_OfText):
    """Perplexity in sliding windows (see `nope.evals.sliding`).

    corpus: one source, read with the run's tokenizer. lengths: of the windows. stride: tokens
    scored in each. budget: tokens scored at each length.
    """

    corpus: DataConfig
    split: str
    lengths: tuple[int, ...]
    stride: int
    budget: int
    kind = 'perplexity'

    @property
    def extent(self) -> int:
        return max(self.lengths)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeedlesSpec(_OfText):
    """Retrieval by length and depth (see `nope.evals.needles`).

    task: 'passkey', or another one. template: name of the prompt's pieces. window: tokens up to
    which the model's context reaches. plan_seed: of positions and keys. tests: prompts a cell.
    """

    task: str
    template: str
    max_length: int
    window: int
    plan_seed: int
    tests: int

    @property
    def kind(self) -> str:
        return PASSKEY if self.task == PASSKEY else 'needles'

    @property
    def extent(self) -> int:
        return self.max_length


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongbenchSpec(_OfText):
    """LongBench (see `nope.evals.longbench`).

    folder: of its files. fingerprint: of their content. limit: samples of each data set at most, 0
    for all. max_length: tokens of a prompt. window: of a prompt and its answer,
    unless they may go beyond it.
    """

    folder: str = dataclasses.field(metadata={'identity': False})
    fingerprint: str
    datasets: tuple[str, ...]
    limit: int
    max_length: int
    window: int
    beams: int
    beyond: bool
    kind = 'longbench'

    @property
    def extent(self) -> int:
        return self.window


@dataclasses.dataclass(frozen=True, kw_only=True)
class HarnessSpec(_OfText):
    """Tasks of lm_eval (see `nope.evals.harness`).

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

    @property
    def extent(self) -> int:
        return self.window


TextSpec = PerplexitySpec | NeedlesSpec | LongbenchSpec | HarnessSpec
EvalSpec = GridSpec | PositionsSpec | LengthsSpec | TextSpec


def eval_slug(spec: EvalSpec) -> str:
    """Readable folder name that is unique to the evaluation."""
    return f'{spec.kind}-{spec.extent}-{identifier(spec)}'
