"""A stand-in for a generator of text, in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nope.data.tokenizers import ByteTokenizer
from nope.evals.generation import Options

BYTES = ByteTokenizer()


class Writer:
    """Writes what `says` answers to a prompt. calls: each batch's prompts, and its options."""

    def __init__(self, says: Callable[[str], str]) -> None:
        self.calls: list[tuple[list[np.ndarray], Options]] = []
        self._says = says

    def generate(self, prompts: Sequence[np.ndarray], options: Options) -> list[np.ndarray]:
        self.calls.append((list(prompts), options))
        return [BYTES.encode(self._says(BYTES.decode(ids))) for ids in prompts]

    @property
    def prompts(self) -> list[str]:
        return [BYTES.decode(ids) for prompts, _ in self.calls for ids in prompts]
