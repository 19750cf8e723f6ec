"""Batched generation and scoring on a mesh: prompts in, continuations or log-probabilities out."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.evals import batching
from nope.evals.scoring import Score, Scorer
from nope.model import ModelConfig
from nope.model.cache import empty
from nope.model.decoding import BeamSearch, Sampling, Stops, beams, next_logits, steps, unstack
from nope.runtime.errors import OVERFLOWS
from nope.runtime.seeds import check_seed
from nope.variables import Variables

# Tokens between two looks at what was made, where something other than an id may end a row.
LOOK_EVERY = 16
Ended = Callable[[int, np.ndarray], bool]


@dataclasses.dataclass(frozen=True)
class Options:
    """Decoding options: greedy, sampled or beam search.

    new_tokens: at most so many. least: no stop id comes before so many. stop_ids: end a row, and
    are not in its result. beams: 1 is greedy decoding or sampling. More are beam search, with
    `length_penalty` and `early_stopping` as in `BeamSearch`. temperature, top_k, top_p: as in
    `Sampling`. seed: draws the samples, of 32 bits.
    """

    new_tokens: int
    least: int = 0
    stop_ids: tuple[int, ...] = ()
    beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.new_tokens < 1:
            raise ValueError(f'new_tokens is {self.new_tokens}; it must be at least 1')
        if not 0 <= self.least <= self.new_tokens:
            raise ValueError(f'least is {self.least}; it lies between 0 and new_tokens')
        if any(stop < 0 for stop in self.stop_ids):
            raise ValueError(f'stop_ids are {self.stop_ids}; ids are 0 or more')
        check_seed(self.seed)
        if self.sampling.temperature and self.beams > 1:
            raise ValueError(
                f'beams is {self.beams} and temperature {self.temperature}: beams are not sampled'
            )
        self.search  # noqa: B018 (checks its fields)

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_k, self.top_p)

    @property
    def search(self) -> BeamSearch:
        return BeamSearch(self.beams, self.length_penalty, self.early_stopping)

    @property
    def stops(self) -> Stops:
        return Stops(jnp.asarray(self.stop_ids, jnp.int32), jnp.asarray(self.least, jnp.int32))


class Generator:
    """Model that continues and scores token sequences, in batches of its own choosing.

    The result for a prompt does not depend on the other prompts: rows are padded on the left, and
    each uses its own length. batch_tokens: tokens of a batch on each batch shard of the mesh.
    """

    def __init__(
        self, config: ModelConfig, variables: Variables, mesh: Mesh, *, batch_tokens: int
    ) -> None:
        if batch_tokens < 1:
            raise ValueError(f'batch_tokens is {batch_tokens}; it must be at least 1')
        self.config = config
        self._mesh = mesh
        self._parts = sharding.batch_parts(mesh, sharding.GENERATION_RULES)
        self._batch_tokens = batch_tokens
        with self._rules():
            self._weights = unstack(config, variables)
        self._scorer = Scorer(config, self._weights, mesh, batch_tokens)

    def score(
        self,
        prompts: Sequence[np.ndarray],
        continuations: Sequence[np.ndarray],
        *,
        written: bool = False,
    ) -> list[Score]:
        """Log-probabilities of the tokens of continuations[i] after prompts[i], which is not
        empty; see `Score`. A prefix that sequences share is read once.

        written: whether `generate` would write the continuation. A model that follows the length is
        then told its end, and otherwise one token less, as in a forward pass.
        """
        for prompt, continuation in zip(prompts, continuations, strict=True):
            self._check(prompt, len(continuation) - 1)
            batching.check_ids(continuation, self.config.vocab_size)
        return self._scorer.score(prompts, continuations, written)

    def generate(
        self,
        prompts: Sequence[np.ndarray],
        options: Options,
        ended: Ended | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[np.ndarray]:
        """The new ids of every prompt, int32, in the order of the prompts.

        prompts: int32 ids, each at least one. ended: is asked every few tokens, with a prompt's
        index and its new ids so far, whether to end that row (not with beams). numbers: of 32 bits.
        They draw a prompt's samples, with the seed; None for its index. ValueError for a prompt
        too long for the position encoding, and for logits of NaN or infinity.
        """
        drawn_by = range(len(prompts)) if numbers is None else numbers
        for prompt in prompts:
            self._check(prompt, options.new_tokens)
        if ended is not None and options.beams > 1:
            raise ValueError('beam search looks at stop ids alone; `ended` needs beams=1')
        made: list[np.ndarray] = [np.zeros(0, np.int32)] * len(prompts)
        waiting = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
        compiled = rows = 0  # the length of the batch before, and its rows
        while waiting:
            length = batching.padded_length(len(prompts[waiting[0]]))
            row_tokens = (length + options.new_tokens) * options.beams
            most = batching.most_rows(self._batch_tokens, row_tokens, self._parts)
            if length != compiled:
                alike = sum(batching.padded_length(len(prompts[i])) == length for i in waiting)
                share = alike if alike > most else len(waiting)
                rows = batching.even_rows(share, most, self._parts)
                compiled = length
            # Rather idle rows in the last batch than a program of its own.
            batch, waiting = waiting[:rows], waiting[rows:]
            places = [(i, drawn_by[i]) for i in batch]
            found = self._batch([prompts[i] for i in batch], places, rows, length, options, ended)
            for i, ids in zip(batch, found, strict=True):
                made[i] = ids
        return made

    def _batch(
        self,
        prompts: Sequence[np.ndarray],
        places: Sequence[tuple[int, int]],
        rows: int,
        length: int,
        options: Options,
        ended: Ended | None,
    ) -> list[np.ndarray]:
        """places: index and number of each prompt."""
        indices, drawn_by = zip(*places, strict=True)
        tokens_BT = batching.left_padded(prompts, rows, length)
        lengths = np.array([len(p) for p in prompts] + [len(prompts[0])] * (rows - len(prompts)))
        numbers = np.array([*drawn_by] + [0] * (rows - len(places)), np.uint32)
        idle_B = np.arange(rows) >= len(prompts)
        with self._rules():
            place = functools.partial(
                sharding.put, sharding=sharding.rows(self._mesh, sharding.GENERATION_RULES)
            )
            asked = PromptBatch(
                place(tokens_BT),
                place((length - lengths).astype(np.int32)) if np.any(lengths < length) else None,
                place((lengths + options.new_tokens).astype(np.float32)),
                place(idle_B),
                place(numbers),
            )
            if options.beams > 1:
                made_BM, lengths_B, scores_B = sharding.fetch(
                    search_batch(
                        self.config,
                        options.search,
                        options.new_tokens,
                        self._weights,
                        asked,
                        options.stops,
                    )
                )
                invalid_B = np.isnan(scores_B)
            else:
                made_BM, lengths_B, invalid_B = self._sample(asked, options, indices, ended)
        for i, prompt, invalid in zip(indices, prompts, invalid_B, strict=False):  # idle rows last
            if invalid:
                raise ValueError(
                    f'logits after prompt {i} ({len(prompt)} tokens) are NaN or infinite: '
                    f'{OVERFLOWS}'
                )
        return [made_BM[row, : lengths_B[row]] for row in range(len(prompts))]

    def _sample(
        self, asked: PromptBatch, options: Options, indices: Sequence[int], ended: Ended | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sampling, stops, last = options.sampling, options.stops, options.new_tokens
        key = jax.random.key(options.seed)
        state = begin_batch(self.config, sampling, last, self._weights, asked, stops, key)
        if ended is not None:
            for upto in range(LOOK_EVERY, last, LOOK_EVERY):
                state = advance_batch(self.config, sampling, self._weights, state, stops, upto)
                made_BM, lengths_B, done_B = sharding.fetch(
                    (state.tokens_BM, state.lengths_B, state.done_B)
                )
                done_B = np.array(done_B)
                for row, i in enumerate(indices):
                    done_B[row] = done_B[row] or ended(i, made_BM[row, : lengths_B[row]])
                state = state._replace(done_B=sharding.put(done_B, state.done_B.sharding))
        if last > 1:
            state = advance_batch(self.config, sampling, self._weights, state, stops, last)
        return sharding.fetch((state.tokens_BM, state.lengths_B, state.invalid_B))

    def _check(self, prompt: np.ndarray, more: int) -> None:
        if not len(prompt):
            raise ValueError('a prompt is empty; it needs at least one token')
        batching.check_ids(prompt, self.config.vocab_size)
        longest = self.config.longest
        if longest is not None and len(prompt) + more > longest:
            raise ValueError(
                f'a prompt of {len(prompt)} tokens and {more} new ones: '
                f'{self.config.describe_position()} positions end at {longest}'
            )

    def _rules(self) -> Any:
        return sharding.use(self._mesh, sharding.GENERATION_RULES)


class PromptBatch(NamedTuple):
    """A batch of prompts: ids [B, T] padded on the left, padding [B] or None, final lengths [B],
    a mask of the rows that pad the batch [B], and the number of each prompt [B]."""

    tokens_BT: jax.Array
    padding_B: jax.Array | None
    length_B: jax.Array
    idle_B: jax.Array
    numbers_B: jax.Array


def _read(
    config: ModelConfig, new_tokens: int, weights: Mapping[str, Any], asked: PromptBatch
) -> tuple[jax.Array, Any]:
    slots = asked.tokens_BT.shape[1] + new_tokens
    cache = empty(config, asked.length_B, slots, asked.padding_B)
    return next_logits(config, weights, asked.tokens_BT, cache)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def begin_batch(
    config: ModelConfig,
    sampling: Sampling,
    new_tokens: int,
    weights: Mapping[str, Any],
    asked: PromptBatch,
    stops: Stops,
    key: jax.Array,
) -> steps.State:
    logits_BV, cache = _read(config, new_tokens, weights, asked)
    keys_B = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, asked.numbers_B)
    return steps.begin(sampling, cache, logits_BV, new_tokens, stops, asked.idle_B, keys_B)


advance_batch = jax.jit(steps.advance, static_argnums=(0, 1), donate_argnums=3)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def search_batch(
    config: ModelConfig,
    search: BeamSearch,
    new_tokens: int,
    weights: Mapping[str, Any],
    asked: PromptBatch,
    stops: Stops,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    logits_BV, cache = _read(config, new_tokens, weights, asked)
    upto = jnp.asarray(new_tokens, jnp.int32)
    return beams.search(
        config, search, weights, cache, logits_BV, new_tokens, stops, upto, asked.idle_B
    )
