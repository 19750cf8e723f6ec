"""A stand-in for a generator of text, in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nope.data.tokenizers import ByteTokenizer
from nope.evals.generation import Options

BYTES = ByteTokenizer()


class Writer:
    """Writes what `says` answers to a prompt. calls: the prompts of each batch, and its options."""

    def __init__(self, says: Callable[[str], str]) -> None:
        self.calls: list[tuple[list[str], Options]] = []
        self._says = says

    def generate(self, prompts: Sequence[np.ndarray], options: Options) -> list[np.ndarray]:
        texts = [BYTES.decode(ids) for ids in prompts]
        self.calls.append((texts, options))
        return [BYTES.encode(self._says(text)) for text in texts]

    @property
    def prompts(self) -> list[str]:
        return [text for texts, _ in self.calls for text in texts]
