"""Validation in training: which steps are scored, and the best of them so far."""

from __future__ import annotations

from collections.abc import Callable

from nope.checkpoints.best import Best
from nope.training.config import Validation
from nope.variables import Variables

ACCURACY = 'validation_accuracy'  # in `metrics.jsonl`

Score = Callable[[Variables], float]


class Selection:
    """Scores of a run's steps, of which the best one's checkpoint is kept.

    config, score: None for a run without. best: what was the best when the run stopped. A tie keeps
    the earlier step.
    """

    def __init__(
        self, config: Validation | None, score: Score | None, best: Best | None = None
    ) -> None:
        self._config, self._score = config, score
        self.best = best

    def due(self, step: int) -> bool:
        """Whether the state after that step is scored."""
        return self._config is not None and step % self._config.every == 0

    def look(self, step: int, variables: Variables) -> dict[str, float]:
        """Scores the variables after a step; what `metrics.jsonl` says of it."""
        assert self._score is not None
        score = self._score(variables)
        if self.best is None or score > self.best.score:
            self.best = Best(step, score)
        return {ACCURACY: score}

    def is_best(self, step: int) -> bool:
        return self.best is not None and self.best.step == step
