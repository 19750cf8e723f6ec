"""Decoding of generated tokens to the text behind their prompt, up to a stop."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from nope.data.tokenizers import Tokenizer, decode_special

END_TOKENS = 64  # of a prompt: as much as the text of later tokens depends on
Decode = Callable[[Tokenizer, np.ndarray], str]


@dataclasses.dataclass(frozen=True)
class Continuation:
    """Text of generated tokens behind a prompt, ids [T] int32.

    stops: texts that end it. They are looked for where special tokens are spelled, as stock does:
    '<|im_end|>' and a line feed behind it may be one.
    """

    tokenizer: Tokenizer
    prompt: np.ndarray
    stops: tuple[str, ...] = ()

    def text(self, ids: np.ndarray) -> str:
        """The text of `ids` [n] behind the prompt. Some tokenizers drop a blank from the beginning
        of what they decode: the end of the prompt is decoded with it."""
        return self._behind(ids, lambda tokenizer, ids: tokenizer.decode(ids))

    def stopped(self, ids: np.ndarray) -> bool:
        """True where a stop is in the text of `ids`."""
        made = self._behind(ids, decode_special)
        return cut(made, self.stops) != made

    def upto_stop(self, ids: np.ndarray) -> tuple[str, np.ndarray]:
        """The text before the first stop, and the fewest of the ids that hold it."""
        made = self._behind(ids, decode_special)
        kept = cut(made, self.stops)
        if kept == made:
            return self.text(ids), ids

        def spelled(n: int) -> str:
            return self._behind(ids[:n], decode_special)

        count = bisect.bisect_left(range(len(ids)), True, key=lambda n: spelled(n).startswith(kept))
        begun = spelled(count)[len(kept) :]  # of the stop, in the last of these tokens
        return self.text(ids[:count]).removesuffix(begun), ids[:count]

    def _behind(self, ids: np.ndarray, decode: Decode) -> str:
        ids = ids[ids < self.tokenizer.vocab_size]  # a model may have more, which no text has
        end = self.prompt[-END_TOKENS:]
        before = decode(self.tokenizer, end)
        whole = decode(self.tokenizer, np.concatenate([end, ids]))
        return whole[len(before) :] if whole.startswith(before) else decode(self.tokenizer, ids)


def cut(text: str, stops: Sequence[str]) -> str:
    """The text before the first occurrence of any of `stops`."""
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]
