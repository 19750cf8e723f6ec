"""What measurements share."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from experiments import facts
from experiments.evaluations import TextSpec
from nope.evals.generation import Generator
from nope.evals.samples import NAME, SampleLog
from nope.interop.fold import is_neutral
from nope.records import Records
from nope.variables import Variables

if TYPE_CHECKING:
    from experiments.lab import Lab

Measurement = Callable[[pathlib.Path], tuple[Records, dict[str, Any]]]


def open_log(folder: pathlib.Path) -> SampleLog:
    """Finished samples of the evaluation whose records go into `folder`."""
    return SampleLog(folder / NAME)


def model_of(lab: Lab, spec: TextSpec) -> tuple[Variables, dict[str, Any]]:
    """The variables that an evaluation of text measures, and what to say of their lambda."""
    scale = lab.best_scale(spec.scale)
    variables = lab.scaled(spec.run, None, scale)
    neutral = is_neutral(spec.model, variables, spec.extent)
    return variables, facts.describe_scale(spec.run, scale, neutral)


def generator(lab: Lab, spec: TextSpec, variables: Variables) -> Generator:
    return Generator(spec.model, variables, lab.mesh, batch_tokens=lab.batch_tokens)
