"""Records of an evaluation: measured, described, saved."""

from __future__ import annotations

import dataclasses
import pathlib

from experiments import facts
from experiments.bench import Bench
from experiments.evaluations.base import EvalSpec
from nope import records
from nope.runtime import memory, processes
from nope.training.goodput import Goodput


def check(bench: Bench, spec: EvalSpec) -> None:
    """Raises what the evaluation would raise about the mesh, the text and the files it reads."""
    _ = bench.mesh
    spec.check(bench)


def make(bench: Bench, spec: EvalSpec, folder: pathlib.Path) -> None:
    """Measures, and leaves the records in the folder."""
    goodput = Goodput(folder)
    with goodput.time('evaluation'):
        found, more = spec.measure(bench, folder)
    goodput.write()
    memory.give_back()
    known = facts.of_evaluation(
        spec.run, spec.trained_on, spec.model, spec.measured_step, spec.read_split
    )
    attributes = {**known, **found.attributes, **more}
    found = dataclasses.replace(found, attributes=attributes)
    what, how = spec.measured_on(found)
    attributes |= {'measured_on': what, 'measured_how': how}
    processes.from_first(lambda: records.save(found, folder))
