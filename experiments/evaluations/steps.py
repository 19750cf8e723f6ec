"""Earlier steps of a run, for evaluations that measure one."""

from __future__ import annotations

from experiments.evaluations.base import EvalEntry
from experiments.runs import ImportSpec
from experiments.runs.pretraining import kept_step as step_of


def kept_step(asked: EvalEntry) -> int | None:
    """The step after `step_share` of the training, whose checkpoint the run keeps; None for the
    last."""
    entry = asked.entry
    if 'step_share' not in entry or entry['step_share'] == 1.0:
        return None
    field, run = entry.path('step_share'), asked.run.unchanged
    if isinstance(run, ImportSpec):
        raise ValueError(f'{field}: an imported model has no earlier steps')
    step = step_of(entry['step_share'], run.train.steps, field)
    if step not in run.train.keep_steps:
        raise entry.error('step_share', f'the run keeps the steps {run.train.keep_steps}')
    if run.earlier is not None and step <= run.earlier.steps:
        raise entry.error(
            'step_share',
            f'the run drops its position encoding after step {run.earlier.steps}; measured is the '
            'model that it ends with, at a later step',
        )
    return step
