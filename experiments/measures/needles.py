"""Retrieval of needles by length and depth: the passkey, and others."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

from experiments.evaluations import PASSKEY, NeedlesSpec
from experiments.measures.base import Measurement, generator, model_of, open_log
from nope.data import load_tokenizer
from nope.data.templates import TEMPLATES
from nope.evals.needles import TASKS, grid, passkey
from nope.records import Records

if TYPE_CHECKING:
    from experiments.lab import Lab


def check(lab: Lab, spec: NeedlesSpec) -> None:
    del lab
    _plan(spec)


def measurement(lab: Lab, spec: NeedlesSpec) -> Measurement:
    lab.best_scale(spec.scale)  # a grid is measured before the folder is locked
    evaluation: Any = passkey if spec.task == PASSKEY else grid

    def measure(folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        variables, more = model_of(lab, spec)
        found = evaluation.run(
            generator(lab, spec, variables),
            _plan(spec),
            open_log(folder),
            window=spec.window,
            progress=lab.bar(spec.task.replace('_', ' ')),
        )
        return found, more

    return measure


def _plan(spec: NeedlesSpec) -> Any:
    template, tokenizer = TEMPLATES[spec.template], load_tokenizer(spec.run.data.tokenizer)
    options: dict[str, Any] = {'bos': spec.bos, 'tests': spec.tests}
    if spec.task == PASSKEY:
        return passkey.plan(template, tokenizer, spec.max_length, spec.plan_seed, **options)
    task = TASKS[spec.task]
    return grid.plan(task, template, tokenizer, spec.max_length, spec.plan_seed, **options)
