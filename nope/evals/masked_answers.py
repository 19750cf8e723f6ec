"""Answers of an encoder: one pass over a prompt and a masked place for each token of its answer.

Masked places differ by their positions alone. An encoder without positions has the same state at
all of them, and therefore the same prediction: it gives answers of one token repeated, and no
others. As many places as the answer has tokens also tell it how long the answer is, which a decoder
has to find out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import losses, sharding
from nope.data.batch import Batch
from nope.data.tasks import Tokenised, masked
from nope.evals import batching
from nope.evals.scoring import Score
from nope.model import ModelConfig, apply
from nope.runtime.errors import OVERFLOWS
from nope.variables import Variables


class MaskedScorer:
    """Scores of whole answers, as `nope.evals.generation.Generator` gives those of decoders.

    batch_tokens: tokens of a batch on each batch shard of the mesh.
    """

    def __init__(
        self, config: ModelConfig, variables: Variables, mesh: Mesh, *, batch_tokens: int
    ) -> None:
        self.config = config
        self._variables = variables
        self._mesh = mesh
        self._batch_tokens = batch_tokens

    def score(
        self,
        prompts: Sequence[np.ndarray],
        continuations: Sequence[np.ndarray],
        *,
        written: bool = True,
    ) -> list[Score]:
        """Scores of continuations[i], an answer and EOS, after prompts[i]. EOS is given, not
        predicted: its probability is 1. ValueError for ids outside the vocabulary and for NaN."""
        examples = [Tokenised(*pair) for pair in zip(prompts, continuations, strict=True)]
        for ids in (*prompts, *continuations):
            batching.check_ids(ids, self.config.vocab_size)
        found: dict[int, Score] = {}
        for chosen, rows, length in self._batches(examples):
            some = [examples[i] for i in chosen]
            batch = masked([*some, *some[:1] * (rows - len(some))], length)
            place = functools.partial(sharding.put, sharding=sharding.rows(self._mesh))
            with sharding.use(self._mesh):
                nll_BT, best_BT = sharding.fetch(
                    read_masked(self.config, self._variables, jax.tree.map(place, batch))
                )
            for row, (i, example) in enumerate(zip(chosen, some, strict=True)):
                places = slice(len(example.prompt), example.length)
                log_probs, best = np.append(-nll_BT[row, places], 0), best_BT[row, places]
                if np.isnan(log_probs).any():
                    raise ValueError(f'log-probabilities of sequence {i} are NaN: {OVERFLOWS}')
                best = np.append(best, example.target[-1])
                found[i] = Score(log_probs.astype(np.float32), best == example.target, best)
        return [found[i] for i in range(len(examples))]

    def _batches(self, examples: Sequence[Tokenised]) -> Iterator[tuple[list[int], int, int]]:
        """Indices of the examples of a batch, its rows and its length."""
        parts = sharding.batch_parts(self._mesh)
        by_length: dict[int, list[int]] = {}
        for i, example in enumerate(examples):
            by_length.setdefault(padded_length(self.config, example.length), []).append(i)
        for length, members in sorted(by_length.items()):
            most = batching.most_rows(self._batch_tokens, length, parts)
            rows = batching.padded_rows(len(members), most, parts)
            for start in range(0, len(members), rows):
                yield members[start : start + rows], rows, length


def padded_length(config: ModelConfig, tokens: int) -> int:
    """Tokens of the rows of examples of so many, at most those that positions are defined for."""
    length = batching.padded_length(tokens)
    return length if config.longest is None else max(min(length, config.longest), tokens)


@functools.partial(jax.jit, static_argnums=0)
def read_masked(
    config: ModelConfig, variables: Variables, batch: Batch
) -> tuple[jax.Array, jax.Array]:
    """Negative log-likelihood of every target in nats, and the most likely token there, [B, T]."""
    length_B = None
    if config.follows_length and batch.segments is not None:
        length_B = jnp.sum(batch.segments > 0, axis=1).astype(jnp.float32)
    output = apply(config, variables, batch.tokens, segments_BT=batch.segments, length=length_B)
    return losses.token_choices(output.hidden, output.head, batch.targets, cap=config.logit_cap)
