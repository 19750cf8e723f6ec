"""LongBench prompts: template, tokenisation, truncation in the middle."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

import numpy as np

from nope.data.chat import Chat, prompt_ids
from nope.data.prefix import encode_with_bos, prefix_of
from nope.data.tokenizers import Tokenizer
from nope.evals.longbench.datasets import DATASETS, MOST_NEW_TOKENS
from nope.evals.longbench.reading import LongBenchSample

log = logging.getLogger(__name__)

# A cut prompt is tokenised again. Where both cuts meet it may grow by a few tokens: by eight, with
# a tokenizer of bytes whose characters were cut.
_LEAST_MARGIN = 12


@dataclasses.dataclass(frozen=True)
class LongBenchPrompt:
    """ids: [n] int32, with the prefix where there is one. truncated: the middle was left out."""

    ids: np.ndarray
    truncated: bool


def prompt_budget(window: int, names: Sequence[str] = tuple(DATASETS)) -> int:
    """The `max_length` of prompts for a model that reads `window` tokens; logged.

    It is window - 512 - margin, with 512 tokens for the longest answers. The margin is 24 for every
    1024 of the window, less 12, and at least 12. Windows of 2, 4, 8, 16 and 32 x 1024 have the
    published settings, 18 x 1024 that of arXiv 2404.12224. One rule for all data sets, also where
    answers are shorter. A window that is too short for it leaves room for the longest answers of
    the data sets `names` alone. ValueError for a window without room for these and two tokens.
    """
    margin = max(-(-24 * window // 1024) - 12, _LEAST_MARGIN)
    longest = max((DATASETS[name] for name in names), key=lambda dataset: dataset.new_tokens)
    answer = MOST_NEW_TOKENS
    if window - answer - margin < 2:
        answer = longest.new_tokens
    budget = window - answer - margin
    if budget < 2:
        raise ValueError(
            f'window is {window}; it must be at least {answer + _LEAST_MARGIN + 2}, '
            f'{answer} tokens for an answer of {longest.name} and {_LEAST_MARGIN + 2} beside'
        )
    log.info('LongBench in a window of %d tokens: prompts of at most %d', window, budget)
    return budget


def check_settings(tokenizer: Tokenizer, max_length: int, bos: bool | None) -> None:
    """ValueError for what `prompt` could not use."""
    if max_length < 2:
        raise ValueError(f'max_length is {max_length}; it must be at least 2')
    prefix_of(tokenizer, bos)


def prompt(
    sample: LongBenchSample,
    tokenizer: Tokenizer,
    *,
    max_length: int,
    bos: bool | None,
    chat: Chat | None = None,
) -> LongBenchPrompt:
    """Prompt of a sample in its data set's template; a long one is truncated in the middle.

    bos: as `nope.data.prefix` has it; the prefix counts. A longer prompt is cut to its first and
    last int(max_length / 2) ids. Each half is decoded alone, without special tokens, and the two
    texts are tokenised again as one. The result is about as long. chat: asks in turns, which do not
    count. Prompts that a text goes on with are not asked in turns.
    """
    dataset = DATASETS[sample.dataset]
    text = dataset.prompt.format(context=sample.context, input=sample.input)
    ids = encode_with_bos(tokenizer, text, bos)
    truncated = len(ids) > max_length
    if truncated:
        half = max_length // 2
        text = tokenizer.decode(ids[:half]) + tokenizer.decode(ids[-half:])
    asks = None if dataset.continued else chat
    return LongBenchPrompt(prompt_ids(tokenizer, text, bos, asks), truncated)
