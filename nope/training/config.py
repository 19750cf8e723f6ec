"""Training length, shapes and execution of a run: `TrainConfig` and `Compute`."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from nope import sharding
from nope.attention import Mask
from nope.attention.api import BACKENDS
from nope.attention.backend import describe
from nope.model import ModelConfig
from nope.runtime.errors import FieldError
from nope.training import optim, tracker

MOST = 2**31 - 1  # steps are counted in int32


@dataclasses.dataclass(frozen=True)
class Validation:
    """Validation in training, whose best step's checkpoint is kept and used.

    every: in steps. share: of the validation examples, in (0, 1].
    """

    every: int
    share: float

    def __post_init__(self) -> None:
        if self.every < 1:
            raise FieldError('every', self.every, 'it must be at least 1, or None for never')
        if not 0 < self.share <= 1:
            raise FieldError('share', self.share, 'accepted: above 0, up to 1')


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """Steps, sequence lengths and optimizer of a run.

    lengths: training lengths in tokens, taken in turn: step k trains on sequences of
        lengths[k % len(lengths)] tokens, the first ones of blocks of the longest.
    keep_steps: steps whose checkpoint is never removed.
    validation: after which steps the model is scored; None for never.
    """

    lengths: tuple[int, ...]
    batch_size: int
    steps: int
    optimizer: optim.OptimizerConfig
    keep_steps: tuple[int, ...] = ()
    validation: Validation | None = None

    def __post_init__(self) -> None:
        for name, value in (('batch_size', self.batch_size), ('steps', self.steps)):
            if value < 1:
                raise FieldError(name, value, 'it must be at least 1')
            if value > MOST:
                raise FieldError(name, value, f'accepted: up to {MOST:,}')
        if not self.lengths or min(self.lengths) < 1:
            raise FieldError('lengths', self.lengths, 'each must be at least 1 token')
        if self.validation is not None and self.validation.every > self.steps:
            rule = f'accepted: up to the {self.steps} steps of the training, or None for never'
            raise FieldError('validation', self.validation.every, rule)

    @property
    def block(self) -> int:
        """The longest training length."""
        return max(self.lengths)

    @property
    def tokens(self) -> int:
        """Tokens trained on in all."""
        cycle = len(self.lengths)
        whole, rest = divmod(self.steps, cycle)
        return self.batch_size * (whole * sum(self.lengths) + sum(self.lengths[:rest]))


@dataclasses.dataclass(frozen=True)
class Earlier:
    """The model of a run's first `steps` steps, where that is another one than it ends with: the
    same arrays, which mean the same."""

    model: ModelConfig
    steps: int


@dataclasses.dataclass(frozen=True)
class Compute:
    """Execution details of a run: they change nothing in its results but rounding.

    mesh: of the devices. later_mesh: mesh of searches, fine-tuning and evaluations, with few long
    sequences; None for `mesh`. checkpoints: folder or gs://BUCKET/FOLDER for the checkpoints of all
    runs, a folder each; None for the run's folder. accumulate: micro-batches per step of
    pre-training. None takes as few as leave each batch shard `shard_sequences` sequences at a time.
    checkpoint_every, log_every: in steps. keep: newest checkpoints kept. threads: of the loader.
    slow_step: a step of so many times the median is logged. hang_seconds: without a step for so
    long, the stacks of all threads are written down. After six times as long several processes are
    ended (`Watch`). profile: traced steps of each attempt. monitor: steps between two looks at
    entropy and largest logit of every layer's attention (`attention_metrics`); 0 for never. wandb:
    project of Weights & Biases for the metrics, with the extra `wandb`; None for none.
    """

    mesh: sharding.MeshConfig = sharding.MeshConfig()
    later_mesh: sharding.MeshConfig | None = None
    checkpoints: str | None = None
    accumulate: int | None = 1
    shard_sequences: int = 4
    checkpoint_every: int = 500
    log_every: int = 10
    keep: int = 2
    threads: int = 1
    slow_step: float = 5.0
    hang_seconds: float = 600.0
    profile: int = 0
    monitor: int = 0
    wandb: str | None = None

    def __post_init__(self) -> None:
        if self.accumulate is not None and self.accumulate < 1:
            raise FieldError('accumulate', self.accumulate, 'it must be at least 1, or None')
        for name in ('shard_sequences', 'checkpoint_every', 'log_every', 'keep', 'threads'):
            if getattr(self, name) < 1:
                raise FieldError(name, getattr(self, name), 'it must be at least 1')
        if self.checkpoints == '':
            raise FieldError(
                'checkpoints', '', "it must name a folder, or be None for the run's own"
            )
        place = self.checkpoints or ''
        if '://' in place and not place.startswith('gs://'):
            raise FieldError('checkpoints', place, 'accepted: a folder, or gs://BUCKET/FOLDER')
        if not self.slow_step > 1:
            raise FieldError('slow_step', self.slow_step, 'it must be above 1')
        if not self.hang_seconds > 0:
            raise FieldError('hang_seconds', self.hang_seconds, 'it must be above 0')
        for name in ('profile', 'monitor'):
            if getattr(self, name) < 0:
                raise FieldError(name, getattr(self, name), 'it must be 0 or more')
        if self.wandb is not None and (why := tracker.refusal(self.wandb)):
            raise FieldError('wandb', self.wandb, why)

    def micro_batches(self, batch_size: int, mesh: Mesh) -> int:
        """Number of micro-batches per step."""
        if self.accumulate is not None:
            return self.accumulate
        shard = batch_size // sharding.batch_parts(mesh)
        least = math.ceil(shard / self.shard_sequences)
        return next((n for n in range(max(least, 1), shard) if shard % n == 0), max(shard, 1))

    def mesh_of(self, later: bool, devices: list[jax.Device] | None = None) -> Mesh:
        """Mesh of pre-training, or of later runs; ValueError where it does not fit the devices
        (default: all)."""
        asked = self.later_mesh if later and self.later_mesh is not None else self.mesh
        return sharding.make_mesh(asked, devices, self.mesh_field(later))

    def mesh_field(self, later: bool) -> str:
        """Config field that sets `mesh_of`, for messages."""
        return 'compute.later_mesh' if later and self.later_mesh is not None else 'compute.mesh'


def check_mesh(
    model: ModelConfig,
    config: TrainConfig,
    compute: Compute,
    mesh: Mesh,
    field: str = 'compute.mesh',
    section: str = 'train',
) -> None:
    """ValueError, naming `field` (the mesh) or the batch of `section`. The batch must split over
    micro-batches and devices, heads and sequence over the devices of their axes."""
    tensor, context = mesh.shape['tensor'], mesh.shape['context']
    if model.heads % tensor:
        raise ValueError(
            f'{field}.tensor is {tensor}; it must divide model.heads, which is {model.heads}'
        )
    trains_weights = config.optimizer.trains in ('params', 'all')
    check_whole_sequences(model, mesh, field, dropout=trains_weights)
    for length in config.lengths:
        if length % context:
            raise ValueError(
                f'{field}.context is {context}; it must divide the training length, {length}'
            )
    accumulate = compute.accumulate or 1  # None finds one that divides
    parts = accumulate * sharding.batch_parts(mesh)
    if config.batch_size % parts:
        raise ValueError(
            f'{section}.batch_size is {config.batch_size}; it must be a multiple of {parts} '
            f'(compute.accumulate {accumulate} x {sharding.batch_parts(mesh)} batch shards), or '
            f'more devices go to {field}.context'
        )


def check_whole_sequences(
    model: ModelConfig, mesh: Mesh, field: str, *, dropout: bool = False
) -> None:
    """ValueError, naming `field` (the mesh), where it splits sequences that have to be whole.
    dropout: whether the model runs with its dropout."""
    context = mesh.shape['context']
    if context > 1 and dropout and model.attention_dropout > 0:
        raise ValueError(
            f'{field}.context is {context}; accepted: 1 where model.attention_dropout is '
            f'{model.attention_dropout}, which the ring of devices has not'
        )
    if context > 1 and model.weights != 'softmax':
        raise ValueError(
            f'{field}.context is {context}; accepted: 1 where model.weights is {model.weights!r}, '
            'which has no ring of devices'
        )
    for i, kind in enumerate(model.kinds):
        if context > 1 and kind.mixer is not None and not kind.attends:
            raise ValueError(
                f'{field}.context is {context}; accepted: 1 where model.pattern[{i}].mixer is '
                f'{kind.mixer.name!r}, which needs whole sequences'
            )


def check_segments(
    model: ModelConfig, config: TrainConfig, field: str, attention: str = 'model.attention'
) -> None:
    """ValueError for segments, which `field` gave, if the model's attention cannot keep them apart.
    `attention` is the field that named it."""
    if model.attention is None:  # one that can is chosen
        return
    backend = BACKENDS[model.attention]
    T, dtype = config.block, model.dtype
    q_BTNH, k_BTKH = (
        jax.ShapeDtypeStruct((1, T, heads, model.head_dim), dtype)
        for heads in (model.heads, model.kv_heads)
    )
    ids_BT: Any = jax.ShapeDtypeStruct((1, T), jnp.int32)
    mask = Mask(model.causal, ids_BT, ids_BT)
    call = describe(q_BTNH, k_BTKH, mask, None, False)  # type: ignore[arg-type]
    reason = backend.unsupported(call)
    if reason and not backend.unsupported(dataclasses.replace(call, segmented=False)):
        raise ValueError(
            f'{field} gives attention segment ids, but {attention}={model.attention!r} cannot: '
            f'{reason}'
        )
