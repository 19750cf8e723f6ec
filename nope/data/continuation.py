"""Decoding of generated tokens to the text behind their prompt."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from nope.data.tokenizers import Tokenizer

END_TOKENS = 64  # of a prompt: as much as the text of later tokens depends on


@dataclasses.dataclass(frozen=True)
class Continuation:
    """Text of generated tokens behind a prompt, ids [T] int32."""

    tokenizer: Tokenizer
    prompt: np.ndarray

    def text(self, ids: np.ndarray) -> str:
        """The text of `ids` [n] behind the prompt. Some tokenizers drop a blank from the beginning
        of what they decode: the end of the prompt is decoded with it."""
        ids = ids[ids < self.tokenizer.vocab_size]  # a model may have more, which no text has
        end, before = self._end
        whole = self.tokenizer.decode(np.concatenate([end, ids]))
        return whole[len(before) :] if whole.startswith(before) else self.tokenizer.decode(ids)

    @functools.cached_property
    def _end(self) -> tuple[np.ndarray, str]:
        """The last tokens of the prompt, and their text."""
        end = self.prompt[-END_TOKENS:]
        return end, self.tokenizer.decode(end)
