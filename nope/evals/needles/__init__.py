"""Needle-in-a-haystack prompts of known token counts, and their evaluation.

`passkey` follows arXiv 2404.12224; the tasks of `TASKS`, which `grid` asks, are in the style of
RULER (arXiv 2404.06654).
"""

from collections.abc import Mapping

from nope.evals.needles.multi_key import MULTI_KEY
from nope.evals.needles.multi_value import MULTI_VALUE
from nope.evals.needles.task import Asked, Task
from nope.evals.needles.variable_tracking import VARIABLE_TRACKING

TASKS: Mapping[str, Task] = {
    task.name: task for task in (MULTI_KEY, MULTI_VALUE, VARIABLE_TRACKING)
}

__all__ = ['TASKS', 'Asked', 'Task']
