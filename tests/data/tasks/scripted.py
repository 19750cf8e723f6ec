"""Random generator that gives what it is told, to draw an example that is written down."""

from __future__ import annotations

from typing import Any

import numpy as np

from nope.data.tasks import Example, Task
from nope.data.tasks.base import Bin


class Scripted:
    """Stands in for a NumPy generator: every draw is the next of `draws`."""

    def __init__(self, *draws: Any) -> None:
        self.draws = list(draws)

    def integers(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return np.array(self.draws.pop(0))

    permutation = integers


def scripted(task: Task, bin: Bin, *draws: Any) -> Example:
    """The example of a bin that the draws make; the last of several."""
    rng: Any = Scripted(*draws)
    return task.examples(bin, rng, count=bin[0] // 2 if task.name == 'lego' else 1)[-1]
