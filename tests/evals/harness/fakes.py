"""A model whose answers can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nope.data.tokenizers import ByteTokenizer
from nope.evals.generation import Options
from nope.evals.scoring import Score

TOKENIZER = ByteTokenizer()
END, BEGIN = TOKENIZER.eos_id, 257
LOOK_EVERY = 4  # new tokens between two calls of `ended`


def _log_probabilities() -> np.ndarray:
    """[V, V] log-probability of every token after every token."""
    logits = 3 * np.random.default_rng(0).standard_normal((TOKENIZER.vocab_size,) * 2)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


TABLE = _log_probabilities()


def direct(context: str, continuation: str, first: int = END) -> float:
    """The log-probability of `continuation`, byte after byte; `first` stands before the context."""
    ids = [first, *context.encode(), *continuation.encode()]
    count = len(continuation.encode())
    return float(sum(TABLE[a, b] for a, b in zip(ids[-count - 1 :], ids[-count:], strict=False)))


class FakeGenerator:
    """Scores by TABLE, where a token depends on the one before it; writes what `writes` says.

    asked: contexts and continuations of every call of `score`, as lists of ids. options: of every
    call of `generate`; prompts: what it was given.
    """

    def __init__(self, writes: Callable[[int, str], str] = lambda i, prompt: prompt) -> None:
        self.asked: list[list[tuple[list[int], list[int]]]] = []
        self.options: list[Options] = []
        self.prompts: list[list[list[int]]] = []
        self.made: list[int] = []  # new tokens of every prompt
        self.numbers: list[int] = []  # what every prompt was drawn by
        self._writes = writes

    def score(
        self, prompts: Sequence[np.ndarray], continuations: Sequence[np.ndarray]
    ) -> list[Score]:
        assert all(ids.dtype == np.int32 for ids in (*prompts, *continuations))
        pairs = [(p.tolist(), c.tolist()) for p, c in zip(prompts, continuations, strict=True)]
        self.asked.append(pairs)
        return [self._scored(*pair) for pair in pairs]

    def _scored(self, prompt: list[int], continuation: list[int]) -> Score:
        before = [prompt[-1], *continuation[:-1]]
        log_probs = TABLE[before, continuation].astype(np.float32)
        best = TABLE[before].argmax(axis=-1)
        return Score(log_probs, best == continuation, best)

    def generate(
        self,
        prompts: Sequence[np.ndarray],
        options: Options,
        ended: Callable[[int, np.ndarray], bool] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[np.ndarray]:
        self.options.append(options)
        self.numbers += numbers or ()
        self.prompts.append([prompt.tolist() for prompt in prompts])
        made = []
        for i, prompt in enumerate(prompts):
            ids = TOKENIZER.encode(self._writes(i, TOKENIZER.decode(prompt)))[: options.new_tokens]
            ends = range(LOOK_EVERY, len(ids), LOOK_EVERY)
            stop = next((n for n in ends if ended is not None and ended(i, ids[:n])), len(ids))
            made.append(ids[:stop])
        self.made += [len(ids) for ids in made]
        return made
