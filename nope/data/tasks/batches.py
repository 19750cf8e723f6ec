"""Training batches of a task: padded examples, loss on their targets alone, exactly resumable."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nope.data.batch import Batch
from nope.data.tasks.base import TRAIN, Example, Task
from nope.data.tasks.config import TaskData
from nope.data.tasks.dataset import draw, parts
from nope.data.tokenizers import Tokenizer
from nope.runtime.errors import FieldError

_ORDER = 2305_19466  # apart from the seeds of the examples


class Tokenised(NamedTuple):
    """Token ids of one example, int32: the prompt, and the target with EOS behind it."""

    prompt: np.ndarray
    target: np.ndarray

    @property
    def length(self) -> int:
        """Tokens that a model reads: all but the last."""
        return len(self.prompt) + len(self.target) - 1


def tokenised(task: Task, tokenizer: Tokenizer, example: Example) -> Tokenised:
    """Ids of an example, without BOS. Prompt and target are encoded apart, so that the ids of a
    target do not depend on what a tokenizer would join it with."""
    target = tokenizer.encode(example.target)
    ended = np.append(target, np.int32(tokenizer.eos_id)).astype(np.int32)
    return Tokenised(tokenizer.encode(task.prompt(example)), ended)


def padded(examples: list[Tokenised], length: int) -> Batch:
    """Examples as rows of `length` tokens, padded on the right, all arrays [B, length].

    Token t is followed by target t. Weights are 1 on the example's target tokens and its EOS, and 0
    on the prompt and the padding. Padding has token 0. No earlier token sees
    the padding. Positions count from the first token, which is the prompt's. ValueError for an
    example that is longer.
    """
    tokens, targets = (np.zeros((len(examples), length), np.int32) for _ in range(2))
    weights = np.zeros((len(examples), length), np.float32)
    for row, example in enumerate(examples):
        n = _fitting(example, length)
        whole = np.concatenate([example.prompt, example.target])
        tokens[row, :n], targets[row, :n] = whole[:-1], whole[1:]
        weights[row, len(example.prompt) - 1 : n] = 1.0
    return Batch(tokens, targets, weights)


def masked(examples: list[Tokenised], length: int) -> Batch:
    """Examples as rows of `length` tokens for an encoder, all arrays [B, length].

    A row is the prompt and a masked place for each token of the answer, which is predicted there:
    target t is of place t. EOS, which no answer has, masks them; where they end the answer ends.
    Weights are 1 on masked places. Padding has token 0 and is a segment of its own, so that no
    token of the example sees it. ValueError for an example that is longer.
    """
    tokens, targets, segments = (np.zeros((len(examples), length), np.int32) for _ in range(3))
    weights = np.zeros((len(examples), length), np.float32)
    for row, example in enumerate(examples):
        first, n = len(example.prompt), _fitting(example, length)
        tokens[row, :first], tokens[row, first:n] = example.prompt, example.target[-1]
        targets[row, first:n], weights[row, first:n] = example.target[:-1], 1.0
        segments[row, :n] = 1
    return Batch(tokens, targets, weights, segments)


def _fitting(example: Tokenised, length: int) -> int:
    """Tokens of an example to read. ValueError for more than `length`."""
    if example.length > length:
        raise ValueError(f'an example has {example.length} tokens to read; a row has {length}')
    return example.length


def training_batches(
    data: TaskData,
    *,
    length: int,
    batch_size: int,
    seed: int,
    start: int,
    rows: np.ndarray | None = None,
    lengths: Sequence[int] = (),
    causal: bool = True,
) -> Iterator[Batch]:
    """Endless global batches `start`, `start + 1`, ... of the training examples, arrays
    [batch_size, length]: tokens, targets, weights; for a model that is not `causal` as `masked`.

    Every epoch has each example once, in an order shuffled anew. Global example i is a pure
    function of (data, seed, i), so `start`, the number of batches consumed, is the whole state of
    the data. rows: the examples of a batch to make, for a process that needs but some; None for
    all. lengths: training cuts the batches to these in turn; none for `length`. FieldError
    before the first batch for a length below the longest training example, whose target would be
    cut off.
    """
    for name, value, least in (('batch_size', batch_size, 1), ('seed', seed, 0)):
        if value < least:
            raise FieldError(name, value, f'it must be at least {least}')
    examples = _training_examples(data)
    longest = max(example.length for example in examples)
    shortest = min((length, *lengths))
    if longest > shortest:
        raise FieldError(
            'length',
            shortest,
            f'the longest training example of {data.task.name} has {longest} tokens to read',
        )
    chosen = np.arange(batch_size) if rows is None else rows
    as_rows = padded if causal else masked

    def example(number: int) -> Tokenised:
        epoch, place = divmod(number, len(examples))
        return examples[_order(seed, len(examples), epoch)[place]]

    return (
        as_rows([example(int(i)) for i in number * batch_size + chosen], length)
        for number in itertools.count(start)
    )


@functools.lru_cache(maxsize=2)  # a batch may lie in two epochs
def _order(seed: int, count: int, epoch: int) -> np.ndarray:
    return np.random.default_rng((seed, _ORDER, epoch)).permutation(count)


@functools.lru_cache(maxsize=2)
def _training_examples(data: TaskData) -> tuple[Tokenised, ...]:
    """Kept for the runs that read the same."""
    tokenizer = data.load_tokenizer()
    return tuple(tokenised(data.task, tokenizer, example) for example in data.dataset().train)


class Extents(NamedTuple):
    """Tokens of the shortest and the longest prompt, and the most that a model reads of an example:
    all but its last token."""

    shortest_prompt: int
    longest_prompt: int
    longest: int


@functools.lru_cache(maxsize=64)
def training_extents(data: TaskData) -> Extents:
    """Extents of training and validation examples. Errors as `nope.data.tasks.draw`."""
    tokenizer = data.load_tokenizer()
    examples: Iterable[Example]
    if data.task.tokens_by_length:  # the shortest and the longest ones decide
        drawn = [part for part in parts(data.task) if part[0] == TRAIN]
        ends = (drawn[0], drawn[-1])
        examples = (e for part in ends for e in draw(data.task, part, data.sizes, data.seed))
    else:
        examples = (*data.dataset().train, *data.dataset().validation)
    read = [tokenised(data.task, tokenizer, example) for example in examples]
    prompts = [len(example.prompt) for example in read]
    return Extents(min(prompts), max(prompts), max(example.length for example in read))
