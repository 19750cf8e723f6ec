"""Batched log-probabilities of continuations after prompts, with a shared-prefix KV cache.

Sequences are sorted so that those with a common prefix are adjacent. The common prefix of a batch
comes from the trunk's cache; the next batch truncates that cache to its own common prefix and
extends it. The rest is read in pieces of one size, by one program.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import losses, sharding
from nope.evals import batching
from nope.model import ModelConfig
from nope.model.cache import Cache, empty
from nope.model.decoding import read
from nope.runtime.errors import OVERFLOWS

# Tokens read at a time: this share of the longest sequence, between these bounds. What fills up the
# last piece is read in vain. Measured with 8 layers of width 512 in float32, pieces of 64, 128, 256
# and 512 tokens take 0.56, 0.52, 0.47, 0.53 ms of a core a token in 8 rows of 1,024 tokens, and
# 1.59, 1.04, 0.93, 0.84 ms in 2 rows of 4,096: every piece rearranges all keys once.
PIECE_SHARE, SMALLEST_PIECE, LARGEST_PIECE = 1 / 8, 64, 512


class Score(NamedTuple):
    """Log-probability of every token of one continuation, float32 [n] nats. greedy: mask of the
    most likely tokens, bool [n]. best: the most likely tokens, int32 [n]."""

    log_probs: np.ndarray
    greedy: np.ndarray
    best: np.ndarray


# In tokens: what a call costs besides its own, since it reads all weights; and what a program that
# is new has to save before it is worth compiling.
CALL_COST, PROGRAM_COST = 128, 4096


class Scorer:
    """See `nope.evals.generation.Generator.score`. weights: `unstack`ed."""

    def __init__(
        self, config: ModelConfig, weights: Mapping[str, Any], mesh: Mesh, batch_tokens: int
    ) -> None:
        self._config = config
        self._weights = weights
        self._mesh = mesh
        self._batch_tokens = batch_tokens
        self._used: set[tuple[int, int]] = set()  # sizes and rows that there are programs for

    def score(
        self, prompts: Sequence[np.ndarray], continuations: Sequence[np.ndarray], written: bool
    ) -> list[Score]:
        found: dict[int, Score] = {}
        groups: dict[int, list[int]] = {}
        for i, (prompt, continuation) in enumerate(zip(prompts, continuations, strict=True)):
            if len(continuation):
                size, _ = sizes(len(prompt) + len(continuation) - 1)
                groups.setdefault(size, []).append(i)
            else:
                found[i] = Score(*(np.zeros(0, dtype) for dtype in (np.float32, bool, np.int32)))
        with sharding.use(self._mesh, sharding.GENERATION_RULES):
            for size, indices in sorted(groups.items()):
                asked = []
                for i in indices:
                    tokens = np.concatenate([prompts[i], continuations[i][:-1]]).astype(np.int32)
                    length = len(tokens) + written
                    asked.append(_Sequence(prompts[i], continuations[i], tokens, length))
                found.update(zip(indices, self._scores(asked, size), strict=True))
        for i, score in found.items():
            if np.isnan(score.log_probs).any():
                raise ValueError(
                    f'log-probabilities of sequence {i} ({len(prompts[i])} tokens and '
                    f'{len(continuations[i])} that are scored) are NaN: {OVERFLOWS}'
                )
        return [found[i] for i in range(len(prompts))]

    def _scores(self, asked: list[_Sequence], size: int) -> list[Score]:
        """Scores of sequences of at most `size` tokens."""
        _, piece = sizes(size)
        parts = sharding.batch_parts(self._mesh, sharding.GENERATION_RULES)
        most = batching.most_rows(self._batch_tokens, size, parts)
        longest = max(len(a.continuation) for a in asked)
        width = min(1 << (longest - 1).bit_length(), piece)
        trunk = Trunk(self._config, self._weights, self._mesh, size + piece, piece)
        order = batching.by_prefix([a.tokens for a in asked])
        if self._config.follows_length:  # what was read for one length serves no other
            order.sort(key=lambda i: asked[i].length)
        rows = self._rows([asked[i] for i in order], size, most, parts)
        found: dict[int, Score] = {}
        for batch in (order[i : i + rows] for i in range(0, len(order), rows)):
            scores = self._batch([asked[i] for i in batch], rows, width, trunk)
            found.update(zip(batch, scores, strict=True))
        return [found[i] for i in range(len(asked))]

    def _rows(self, ordered: list[_Sequence], size: int, most: int, parts: int) -> int:
        """Number of rows per batch at the least cost: fewer rows share a longer prefix and need
        less padding, more rows need fewer calls."""
        _, piece = sizes(size)
        largest = batching.padded_rows(len(ordered), most, parts)
        choices = [largest]
        while choices[-1] > parts and len(choices) < 3:
            choices.append(-(-choices[-1] // (2 * parts)) * parts)

        def cost(rows: int) -> int:
            new = (size, rows) not in self._used
            return self._cost(ordered, rows, piece) + PROGRAM_COST * new

        rows = min(choices, key=cost)
        self._used.add((size, rows))
        return rows

    def _cost(self, ordered: list[_Sequence], rows: int, piece: int) -> int:
        """Tokens that batches of so many rows read, and what their calls cost."""
        tokens, calls, trunk = 0, 0, np.zeros(0, np.int32)
        for start in range(0, len(ordered), rows):
            batch = ordered[start : start + rows]
            shared = self._shared(batch, piece)
            prefix = batch[0].tokens[:shared]
            more = -(-(shared - batching.shared_prefix(trunk, prefix)) // piece)
            trunk = prefix if more else trunk
            rest = -(-(max(len(a.tokens) for a in batch) - shared) // piece)
            tokens += (more + rows * rest) * piece
            calls += more + rest
        return tokens + CALL_COST * calls

    def _batch(self, asked: list[_Sequence], rows: int, width: int, trunk: Trunk) -> list[Score]:
        shared = self._shared(asked, trunk.piece)
        lengths = [a.length for a in asked] + [asked[0].length] * (rows - len(asked))
        # Where it was written, the last token may lie beyond the last position: it is not read.
        length_B = np.minimum(np.array(lengths, np.float32), self._config.longest or np.inf)
        cache = trunk.rows(asked[0].tokens[:shared], length_B)
        rest = [a.tokens[shared:] for a in asked]
        pieces = -(-max(map(len, rest)) // trunk.piece)
        tokens = batching.right_padded(rest, rows, pieces * trunk.piece)
        place = functools.partial(
            sharding.put, sharding=sharding.rows(self._mesh, sharding.GENERATION_RULES)
        )
        parts, counts = [], []
        for begin in range(0, tokens.shape[1], trunk.piece):
            at_BW, targets_BW, count = _targets(asked, shared + begin, trunk.piece, rows, width)
            piece = place(tokens[:, begin : begin + trunk.piece])
            part, cache = read_piece(
                self._config, self._weights, cache, piece, place(at_BW), place(targets_BW)
            )
            parts.append(part)
            counts.append(count)
        return _joined(asked, sharding.fetch(parts), counts)

    def _shared(self, asked: list[_Sequence], least: int) -> int:
        """Number of tokens that the batch's sorted sequences take from the trunk: at least `least`,
        or 0. It is 0 where the model follows the length and lengths differ, and where the trunk
        cannot be truncated."""
        if not self._config.rewinds:
            return 0
        if self._config.follows_length and len({a.length for a in asked}) > 1:
            return 0
        shared = min(
            batching.shared_prefix(asked[0].tokens, asked[-1].tokens),
            min(len(a.prompt) for a in asked) - 1,
        )
        return shared if shared >= least else 0


def sizes(tokens: int) -> tuple[int, int]:
    """Cache length for sequences of this many tokens, and the number of tokens read at a time."""
    size = max(1 << (tokens - 1).bit_length(), SMALLEST_PIECE)
    return size, min(max(round(size * PIECE_SHARE), SMALLEST_PIECE), LARGEST_PIECE)


class _Sequence(NamedTuple):
    """tokens: what the model reads, all but the last; length: what positions and multipliers that
    follow the length are told."""

    prompt: np.ndarray
    continuation: np.ndarray
    tokens: np.ndarray
    length: int


def _targets(
    asked: Sequence[_Sequence], begin: int, piece: int, rows: int, width: int
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Positions and ids of scored tokens in the piece from token `begin` on, int32 [rows, width],
    and their number by sequence. Positions are those of the predictions, within the piece."""
    at_BW, targets_BW = np.zeros((2, rows, width), np.int32)
    counts = []
    for row, a in enumerate(asked):
        first = len(a.prompt) - 1 - begin
        low = min(max(-first, 0), len(a.continuation))
        high = min(max(piece - first, low), len(a.continuation))
        at_BW[row, : high - low] = np.arange(first + low, first + high)
        targets_BW[row, : high - low] = a.continuation[low:high]
        counts.append(high - low)
    return at_BW, targets_BW, counts


def _joined(
    asked: Sequence[_Sequence],
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    counts: Sequence[Sequence[int]],
) -> list[Score]:
    """Scores from what `read_piece` gave and `_targets` counted of every piece."""
    scores = []
    for row, a in enumerate(asked):
        found = [
            [side_BW[row, : count[row]] for side_BW in part]
            for part, count in zip(parts, counts, strict=True)
        ]
        nll, best = (np.concatenate(side) for side in zip(*found, strict=True))
        scores.append(Score(-nll, best == a.continuation, best))
    return scores


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def read_piece(
    config: ModelConfig,
    weights: Mapping[str, Any],
    cache: Cache,
    tokens_BC: jax.Array,
    at_BW: jax.Array,
    targets_BW: jax.Array,
) -> tuple[tuple[jax.Array, jax.Array], Cache]:
    """Extends the cache by a piece; returns the negative log-likelihood of the targets after the
    tokens at `at_BW`, and the most likely tokens there, [B, W]."""
    output, cache = read(config, weights, tokens_BC, cache)
    hidden_BWD = jnp.take_along_axis(output.hidden, at_BW[..., None], axis=1)
    cap = config.logit_cap
    return losses.token_choices(hidden_BWD, output.head, targets_BW, cap=cap), cache


class Trunk:
    """KV cache of one row (one per batch shard) that holds the prefix of a batch.

    The cache is truncated and extended from batch to batch, so each prefix is read once. piece:
    tokens read at a time. slots: of every cache; a multiple of the piece, and one piece more than
    the longest sequence.
    """

    def __init__(
        self, config: ModelConfig, weights: Mapping[str, Any], mesh: Mesh, slots: int, piece: int
    ) -> None:
        self.piece = piece
        self._config = config
        self._weights = weights
        self._slots = slots
        self._parts = sharding.batch_parts(mesh, sharding.GENERATION_RULES)
        self._place = functools.partial(
            sharding.put, sharding=sharding.rows(mesh, sharding.GENERATION_RULES)
        )
        self._tokens = np.zeros(0, np.int32)
        self._length = 0.0
        self._cache: Cache | None = None

    def rows(self, prefix: np.ndarray, length_B: np.ndarray) -> Cache:
        """Cache of B rows that hold the prefix. length_B: float32, the final length of each row.
        All are equal where there is a prefix and the model depends on the length."""
        lengths = self._place(length_B)
        if not len(prefix):
            return _empty(self._config, self._slots, lengths)
        self._read(prefix, float(length_B[0]))
        assert self._cache is not None
        return _spread(self._cache, np.int32(len(prefix)), lengths)

    def _read(self, prefix: np.ndarray, length: float) -> None:
        length_P = self._place(np.full(self._parts, length, np.float32))
        if self._cache is None or (self._config.follows_length and length != self._length):
            self._cache = _empty(self._config, self._slots, length_P)
            self._tokens, self._length = prefix[:0], length
        self._cache = self._cache._replace(length_B=length_P)
        known = batching.shared_prefix(self._tokens, prefix)
        for begin in range(known, len(prefix), self.piece):
            piece = prefix[begin : begin + self.piece]
            tokens = batching.right_padded([piece] * self._parts, self._parts, self.piece)
            self._cache = _fill(
                self._config,
                self._weights,
                self._cache._replace(filled=jnp.asarray(begin, jnp.int32)),
                self._place(tokens),
            )
        if known < len(prefix):
            self._tokens = prefix


@functools.partial(jax.jit, static_argnums=(0, 1))
def _empty(config: ModelConfig, slots: int, length_B: jax.Array) -> Cache:
    return empty(config, length_B, slots)._replace(filled=jnp.zeros((), jnp.int32))


@jax.jit
def _spread(trunk: Cache, filled: jax.Array, length_B: jax.Array) -> Cache:
    """The trunk's first `filled` tokens in every row."""
    rows_B = jnp.zeros(length_B.shape[0], jnp.int32)
    return trunk.take(rows_B)._replace(filled=filled, length_B=length_B)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def _fill(
    config: ModelConfig, weights: Mapping[str, Any], cache: Cache, tokens_BC: jax.Array
) -> Cache:
    return read(config, weights, tokens_BC, cache)[1]
