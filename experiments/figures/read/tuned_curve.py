"""A model fine-tuned at a longer length, as one curve of a panel."""

from __future__ import annotations

import dataclasses

import numpy as np

from experiments.figures.read.length_group import Group


@dataclasses.dataclass(frozen=True)
class TunedCurve:
    """panel: title of the panel it is drawn in. method: what it shares with the same method at
    other lengths and in other panels. tuned: length of the fine-tuning in multiples of L."""

    panel: str
    method: str
    tuned: float
    group: Group

    @property
    def name(self) -> str:
        """Unique in a figure."""
        return f'{self.group.label} ({self.panel})' if self.panel else self.group.label

    @property
    def at_tuned(self) -> int:
        """Index of the length it was tuned at."""
        index = self.group.at(self.tuned)
        assert index is not None
        return index

    @property
    def window_at_tuned(self) -> np.ndarray:
        """[seeds] mean loss over windows of the length it was tuned at."""
        return self.group.loss_window[:, self.at_tuned]
