"""Records of an evaluation: measured, described, saved."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

from experiments.bench import Bench
from experiments.evaluations.base import EvalSpec
from nope import records
from nope.records import Records
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
    read = {'text_tokens': bench.text_tokens(spec.run)}
    described = _with(found, **{**spec.known, **read, **found.attributes, **more})
    what, how = spec.measured_on(described)
    measured_on = {'what': what, 'how': how, 'own_text': spec.own_text}
    whole = _with(described, measured_on=measured_on)
    bench.check_alone()
    processes.from_first(lambda: records.save(whole, folder))


def _with(found: Records, **attributes: Any) -> Records:
    return dataclasses.replace(found, attributes={**found.attributes, **attributes})
