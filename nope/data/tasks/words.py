"""Closed word vocabulary of a task, for training without a tokenizer file."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
from typing import Any

import numpy as np

from nope.data import digest
from nope.data.tasks.base import Task
from nope.runtime.files import read_json, write_json

FILE = 'words.json'  # in the folder of a run that reads a task through its words
PAD, BOS, EOS, SEP = ('<pad>', '<bos>', '<eos>', '[SEP]')

# A word, a separator or one other character, with the blank in front of it.
_PIECE = re.compile(r' ?(?:\[SEP\]|\[NEXT\]|\w+|[^\w\s])')


def vocabulary(task: Task) -> tuple[str, ...]:
    """The pieces of a task's examples: four specials, then words in order of first appearance.

    A piece is a word or a punctuation mark, with the blank in front of it where examples have one.
    The specials are padding, BOS, EOS and the separator of source and target, in that order; tasks
    without a separator do not use theirs. A scratchpad's words are in it whether the task has one
    or not, so that formats share a vocabulary. ValueError for a symbol that is no word.
    """
    for symbol in getattr(task, 'symbols', ()):
        if not re.fullmatch(r'\w+', symbol):
            raise ValueError(
                f'{task.name}: symbol {symbol!r} is no word of letters and digits; use the '
                'tokenizer that it comes from'
            )
    pieces = dict.fromkeys(piece for text in task.alphabet for piece in _pieces(text))
    separators = [piece for piece in pieces if piece.strip() == SEP]
    others = [piece for piece in pieces if piece not in separators]
    return (PAD, BOS, EOS, *(separators or [SEP]), *others)


@dataclasses.dataclass(frozen=True)
class WordTokenizer:
    """A tokenizer of a closed vocabulary; specials as in `vocabulary`.

    `decode(encode(text))` is the text with each run of blanks as one blank and none at its ends, as
    of SentencePiece models. That is a text of the task itself but for the double blanks of
    scratchpads and the blank at the end of prompts.
    """

    pieces: tuple[str, ...] = dataclasses.field(repr=False)
    pad_id: int = 0
    bos_id: int | None = 1
    eos_id: int = 2

    @classmethod
    def of(cls, task: Task) -> WordTokenizer:
        """The tokenizer of a task's own vocabulary."""
        return cls(vocabulary(task))

    @classmethod
    def read(cls, path: pathlib.Path) -> WordTokenizer:
        """The tokenizer that `write` wrote. ValueError, naming the file, for another content."""
        pieces = read_json(path)
        if not isinstance(pieces, list) or not {*map(type, pieces)} <= {str} or len(pieces) < 4:
            raise ValueError(f'{path} holds no list of words: it is damaged or missing')
        return cls(tuple(pieces))

    def write(self, path: pathlib.Path) -> None:
        """The vocabulary as a JSON file, in the order of its ids."""
        write_json(path, list(self.pieces))

    @property
    def vocab_size(self) -> int:
        return len(self.pieces)

    @property
    def prefix(self) -> tuple[int, ...]:
        return ()

    @property
    def stop_ids(self) -> tuple[int, ...]:
        return (self.eos_id,)

    @property
    def fingerprint(self) -> str:
        return digest.of_json(['words', *self.pieces])

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        return {piece: i for i, piece in enumerate(self.pieces)}

    def encode(self, text: str | bytes) -> np.ndarray:
        """Token ids, int32 [n], without BOS and EOS. ValueError for an unknown word."""
        text = text.decode() if isinstance(text, bytes) else text
        pieces = _pieces(text)
        unknown = [piece for piece in pieces if piece not in self._ids]
        if unknown:
            raise ValueError(
                f'word {unknown[0]!r} is not among the {self.vocab_size} of the vocabulary'
            )
        return np.array([self._ids[piece] for piece in pieces], np.int32)

    def decode(self, ids: Any) -> str:
        """Text of `ids`; padding, BOS, EOS and what is no id of the vocabulary are left out."""
        silent = {self.pad_id, self.bos_id, self.eos_id}
        known = (int(i) for i in ids if i < len(self.pieces))
        return ''.join(self.pieces[i] for i in known if i not in silent).strip()


def _pieces(text: str) -> list[str]:
    """Those of a text with single blanks, and one in front."""
    return _PIECE.findall(f' {" ".join(text.split())}')
