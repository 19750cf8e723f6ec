"""Word tokenizer for benchmarks, with about as many tokens a prompt as a real vocabulary."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from nope.data.templates import KEYS, PAPER


class Words:
    """Words, digits and punctuation. The pieces of the paper's passkey prompts, counted as in its
    protocol, are 31, 24, 28, 11 and 6 tokens; with Llama's tokenizer 33, 25, 29, 12 and 6."""

    eos_id, bos_id = 0, 1
    prefix = ()
    stop_ids = (0,)
    fingerprint = 'words'

    def __init__(self) -> None:
        pieces = PAPER.prompt(str(KEYS[0]), 1, 0) + PAPER.answer('0123456789')
        self._ids = {word: i for i, word in enumerate(sorted({*self._cut(pieces)}), 2)}
        self._words = {i: word for word, i in self._ids.items()}

    @property
    def vocab_size(self) -> int:
        return 2 + len(self._ids)

    def encode(self, text: str | bytes) -> np.ndarray:
        text = text.decode() if isinstance(text, bytes) else text
        return np.array([self._ids[word] for word in self._cut(text)], np.int32)

    def decode(self, ids: Any) -> str:
        return ''.join(self._words.get(int(i), '') for i in ids)

    @staticmethod
    def _cut(text: str) -> list[str]:
        return re.findall(r' ?[A-Za-z]+|.|\n', text)
