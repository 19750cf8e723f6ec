"""A book as a haystack: windows of a number of tokens, with a needle at a depth."""

from __future__ import annotations

import functools

import numpy as np

from nope.data.tokenizers import Tokenizer


class Haystack:
    """A book in the tokens of a tokenizer. name: for messages."""

    def __init__(self, text: str, tokenizer: Tokenizer, name: str) -> None:
        self._text, self._tokenizer, self._name = text, tokenizer, name

    def place(self, needle: str, length: int, depth: float) -> str:
        """`length` tokens of the book, with the needle on a line of its own at a depth, 0 .. 1.

        The needle follows the first line end that lies `length * depth` tokens or more from the
        beginning of the book; so many tokens stand before it. ValueError for a book that is too
        short.
        """
        deep = np.nonzero(self._places / (length + 1) - depth >= 0)[0]
        place = int(self._places[deep[0]]) if len(deep) else 0
        begin = place - int(np.round(length * depth))
        if not len(deep) or begin + length > len(self._ids):
            raise ValueError(
                f'{self._name} has {len(self._ids)} tokens, the last line end at '
                f'{self._places[-1]}; it is too short for a length of {length}'
            )
        before = self._tokenizer.decode(self._ids[begin : place + 1])
        behind = self._tokenizer.decode(self._ids[place + 1 : begin + length])
        return f'{before[: max(before.rfind(chr(10)), 0)]} {needle}\n{behind}'

    @functools.cached_property
    def _ids(self) -> np.ndarray:
        return self._tokenizer.encode(self._text)

    @functools.cached_property
    def _places(self) -> np.ndarray:
        """The beginning, and the tokens that have a line end, int64, ascending."""
        ends = [i for i in np.unique(self._ids) if '\n' in self._tokenizer.decode(np.array([i]))]
        return np.concatenate([[0], np.nonzero(np.isin(self._ids, ends))[0]])
