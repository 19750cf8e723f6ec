"""Best checkpoint of a run by a score: which one it is, and that it stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

KEY = 'best'  # of a checkpoint's `data`, which so says what was the best when it was saved


class Best(NamedTuple):
    """Step of a checkpoint and its score, the higher the better."""

    step: int
    score: float

    @property
    def entry(self) -> dict[str, Any]:
        """Entry of the best step in the `data` of a checkpoint."""
        return {KEY: self._asdict()}


def best_of(data: Mapping[str, Any]) -> Best | None:
    """The best that the `data` of a checkpoint name; None where the run compares none."""
    found = data.get(KEY)
    return None if found is None else Best(found['step'], found['score'])


class BestStays:
    """Preservation policy of Orbax: the checkpoint of `step` stays, if that is not None."""

    def __init__(self) -> None:
        self.step: int | None = None

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> Sequence[bool]:
        del context
        return [checkpoint.step == self.step for checkpoint in checkpoints]
