"""Device programs of an experiment, for ahead-of-time compilation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding

from nope import sharding
from nope.data import Batch
from nope.evals import (
    attention_rows,
    forward,
    generation,
    key_attention,
    masked_answers,
    scoring,
    sliding,
)
from nope.evals.bootstrap import RESAMPLES
from nope.evals.generation import Options
from nope.model import ModelConfig
from nope.model.cache import Cache, empty
from nope.model.decoding import unstack
from nope.training import optim
from nope.training.state import TrainState
from nope.training.step import drops
from nope.training.stepping import jitted_step
from nope.variables import Variables, abstract_variables

ANSWER = 8  # tokens of a passkey's answer, filled up


@dataclasses.dataclass(frozen=True)
class Step:
    """A training or search step: `batch` sequences of `length` tokens in `accumulate` parts.

    arrays: what the batch has besides tokens and targets, which alone are blocks of length + 1
        tokens; positions are drawn for a model that has a range of them.
    """

    model: ModelConfig
    optimizer: optim.OptimizerConfig
    length: int
    batch: int
    accumulate: int
    arrays: tuple[str, ...] = ()
    rules = sharding.RULES

    @property
    def kind(self) -> str:
        return 'search' if self.optimizer.trains == 'lam' else 'train'

    def state(self, mesh: Mesh) -> dict[str, Any]:
        """Arrays on the devices before and after, by their kind."""
        state, frozen = _abstract_state(self.model, self.optimizer, mesh)
        return {'parameters': {**frozen, **state.trained}, 'optimizer': state.opt_state}

    def describe(self) -> str:
        return f'{self.kind} {self.length}'

    def trace(self, mesh: Mesh) -> jax.stages.Traced:
        state, frozen = _abstract_state(self.model, self.optimizer, mesh)
        seeds: tuple[Any, ...] = ()
        if drops(self.model, self.optimizer):
            seeds = (_array((), jnp.uint32, sharding.replicated(mesh)),)
        step = jitted_step(self.model, self.optimizer, state)
        return step.trace(state, frozen, self._data(mesh), *seeds)

    def _data(self, mesh: Mesh) -> Batch:
        place, rows = sharding.micro_batches(mesh), self.batch // self.accumulate
        drawn = () if self.model.position_range is None else ('positions',)
        more = {*self.arrays, *drawn}
        shape = (self.accumulate, rows, self.length)
        dtypes = {name: jnp.float32 if name == 'weights' else jnp.int32 for name in more}
        integers = _array(shape, jnp.int32, place)
        arrays = {name: _array(shape, dtype, place) for name, dtype in dtypes.items()}
        return Batch(integers, integers, **arrays)


class _Measuring:
    """Base of programs that train nothing."""

    kind = 'eval'
    model: ModelConfig

    def state(self, mesh: Mesh) -> dict[str, Any]:
        """Arrays on the devices before and after, by their kind."""
        return {'parameters': abstract_variables(self.model, mesh)}


@dataclasses.dataclass(frozen=True)
class Evaluation(_Measuring):
    """An evaluation pass over one batch of windows, and where asked of resamples of them."""

    model: ModelConfig
    entropy: bool
    length: int
    batch: int
    span: int | None = None
    resampled: bool = False
    rules = sharding.RULES

    def describe(self) -> str:
        more = ' with the shape of attention' if self.span else ' with entropy' * self.entropy
        return f'evaluate {self.length}{more}'

    def trace(self, mesh: Mesh) -> jax.stages.Traced:
        rows = sharding.rows(mesh)
        return forward.batch_sums.trace(
            self.model,
            self.entropy,
            abstract_variables(self.model, mesh),
            _array((self.batch, self.length + 1), jnp.int32, rows),
            _array((self.batch,), jnp.float32, rows),
            self.span,
            _array((self.batch, RESAMPLES), jnp.float32, rows) if self.resampled else None,
        )


@dataclasses.dataclass(frozen=True)
class AttentionRows(_Measuring):
    """Attention weights of `queries` queries of each sequence of a batch, in all heads."""

    model: ModelConfig
    queries: int
    length: int
    batch: int
    rules = sharding.RULES

    def describe(self) -> str:
        return f'attention of {self.queries} queries in {self.length}'

    def trace(self, mesh: Mesh) -> jax.stages.Traced:
        rows = sharding.rows(mesh)
        return attention_rows.weights.trace(
            self.model,
            abstract_variables(self.model, mesh),
            _array((self.batch, self.length), jnp.int32, rows),
            _array((self.batch,), jnp.int32, rows),
            _array((self.queries,), jnp.int32, sharding.replicated(mesh)),
        )


@dataclasses.dataclass(frozen=True)
class ValueNorms(_Measuring):
    """Norms of the values of a batch, in all heads."""

    model: ModelConfig
    length: int
    batch: int
    rules = sharding.RULES

    def describe(self) -> str:
        return f'values of {self.length}'

    def trace(self, mesh: Mesh) -> jax.stages.Traced:
        tokens = _array((self.batch, self.length), jnp.int32, sharding.rows(mesh))
        variables = abstract_variables(self.model, mesh)
        return key_attention.value_norms.trace(self.model, variables, tokens)


@dataclasses.dataclass(frozen=True)
class SlidingWindows(_Measuring):
    """A batch of windows whose last `stride` tokens are scored."""

    model: ModelConfig
    stride: int
    length: int
    batch: int
    rules = sharding.RULES

    def describe(self) -> str:
        return f'sliding windows {self.length}'

    def trace(self, mesh: Mesh) -> jax.stages.Traced:
        tokens = _array((self.batch, self.length), jnp.int32, sharding.rows(mesh))
        variables = abstract_variables(self.model, mesh)
        return sliding.loss_sums.trace(self.model, self.stride, variables, tokens)


@dataclasses.dataclass(frozen=True)
class Scoring(_Measuring):
    """A piece of a batch of prompts, read into caches of `length` tokens, with its scores.

    scored: tokens of the longest continuation, filled up to a power of two.
    """

    model: ModelConfig
    length: int
    batch: int
    scored: int = ANSWER
    rules = sharding.GENERATION_RULES

    @property
    def _looked_at(self) -> int:
        """Tokens of a row whose scores are taken."""
        _, piece = scoring.sizes(self.length)
        return min(1 << (self.scored - 1).bit_length(), piece)

    def describe(self) -> str:
        return f'score {self.length}'

    def trace(self, mesh: Mesh) -> jax.stages.Traced:
        size, piece = scoring.sizes(self.length)

        def read(variables: Any, cache: Cache, tokens: Any, at: Any, targets: Any):
            weights = unstack(self.model, variables)
            return scoring.read_piece(self.model, weights, cache, tokens, at, targets)

        rows = sharding.rows(mesh, self.rules)
        look = _array((self.batch, self._looked_at), jnp.int32, rows)
        return jax.jit(read, donate_argnums=1).trace(
            abstract_variables(self.model, mesh),
            self._cache(size + piece, mesh),
            _array((self.batch, piece), jnp.int32, rows),
            look,
            look,
        )

    def _cache(self, slots: int, mesh: Mesh) -> Cache:
        """Descriptions of the cache that a piece is read into, which is given away."""
        rows = sharding.rows(mesh, self.rules)
        lengths = _array((self.batch,), jnp.float32, rows)
        shapes = jax.eval_shape(lambda n: empty(self.model, n, slots), lengths)
        layers = jax.tree.map(lambda x: _array(x.shape, x.dtype, rows), shapes.layers)
        filled = _array((), jnp.int32, sharding.replicated(mesh))
        return Cache(layers, filled, None, lengths)


@dataclasses.dataclass(frozen=True)
class Continuing(_Measuring):
    """A batch of prompts of `length` tokens to the last token of their continuations."""

    model: ModelConfig
    options: Options
    length: int
    batch: int
    rules = sharding.GENERATION_RULES

    def describe(self) -> str:
        beams = f' by {self.options.beams} beams' if self.options.beams > 1 else ''
        return f'continue {self.length} with {self.options.new_tokens}{beams}'

    def trace(self, mesh: Mesh) -> jax.stages.Traced:
        o = self.options

        def proceed(variables: Any, asked: generation.PromptBatch) -> Any:
            weights = unstack(self.model, variables)
            if o.beams > 1:
                return generation.search_batch(
                    self.model, o.search, o.new_tokens, weights, asked, o.stops
                )
            key = jax.random.key(o.seed)
            state = generation.begin_batch(
                self.model, o.sampling, o.new_tokens, weights, asked, o.stops, key
            )
            last = jnp.int32(o.new_tokens)
            return generation.advance_batch(
                self.model, o.sampling, weights, state, o.stops, last
            ).tokens_BM

        rows = sharding.rows(mesh, self.rules)
        by_row = {
            name: _array((self.batch,), dtype, rows)
            for name, dtype in (
                ('padding_B', jnp.int32),
                ('length_B', jnp.float32),
                ('idle_B', jnp.bool_),
                ('numbers_B', jnp.uint32),
            )
        }
        tokens = _array((self.batch, self.length), jnp.int32, rows)
        asked = generation.PromptBatch(tokens, **by_row)
        return jax.jit(proceed).trace(abstract_variables(self.model, mesh), asked)


@dataclasses.dataclass(frozen=True)
class Filling(_Measuring):
    """A batch of prompts with masked answers, read by an encoder."""

    model: ModelConfig
    length: int
    batch: int
    rules = sharding.RULES

    def describe(self) -> str:
        return f'fill masked answers {self.length}'

    def trace(self, mesh: Mesh) -> jax.stages.Traced:
        integers = _array((self.batch, self.length), jnp.int32, sharding.rows(mesh))
        weights = _array(integers.shape, jnp.float32, integers.sharding)
        batch = Batch(integers, integers, weights, integers)
        variables = abstract_variables(self.model, mesh)
        return masked_answers.read_masked.trace(self.model, variables, batch)


Program = (
    Step | Evaluation | AttentionRows | ValueNorms | SlidingWindows | Scoring | Continuing | Filling
)


def answering(
    model: ModelConfig, length: int, rows: Callable[[int, sharding.Rules], int]
) -> Scoring | Filling:
    """The pass that decides answers in sequences of up to `length` tokens."""
    if model.causal:
        return Scoring(model, length, rows(length, Scoring.rules), length)
    return Filling(model, length, rows(length, Filling.rules))


def _abstract_state(
    model: ModelConfig, optimizer: optim.OptimizerConfig, mesh: Mesh
) -> tuple[TrainState, Variables]:
    """The training state and the frozen variables as shapes and shardings: moments lie where their
    variables do."""
    variables = abstract_variables(model, mesh)
    moments = jax.eval_shape(optim.make_optimizer(optimizer).init, variables)
    places = {(leaf.shape, leaf.dtype): leaf.sharding for leaf in jax.tree.leaves(variables)}
    everywhere = sharding.replicated(mesh)
    placed = jax.tree.map(
        lambda leaf: _array(
            leaf.shape, leaf.dtype, places.get((leaf.shape, leaf.dtype), everywhere)
        ),
        moments,
    )
    trained, frozen = optim.split(variables, optimizer.trains)
    return TrainState(_array((), jnp.int32, everywhere), trained, placed), frozen


def _array(shape: tuple[int, ...], dtype: Any, place: NamedSharding) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=place)
