"""What a work folder still lacks for an experiment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from experiments.lab import Lab
from experiments.spec import (
    EvalSpec,
    GridSpec,
    LengthsSpec,
    PositionsSpec,
    RunSpec,
    eval_slug,
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """Missing runs and evaluations, each after what it needs, and how many are there already."""

    runs: tuple[RunSpec, ...]
    evals: tuple[EvalSpec, ...]
    finished: int

    def describe(self) -> str:
        if not (self.runs or self.evals):
            return f'nothing to train or measure: all {self.finished} pieces are there'
        lines = [f'to make: {len(self.runs)} runs, {len(self.evals)} evaluations']
        lines += [f'  train    {run.slug()} ({run.train.tokens:,} tokens)' for run in self.runs]
        lines += [f'  measure  {eval_slug(spec)}' for spec in self.evals]
        return '\n'.join([*lines, f'  {self.finished} finished pieces are used as they are'])


def make_plan(lab: Lab, evals: Iterable[EvalSpec]) -> Plan:
    """Walks what the evaluations need and asks the lab what of it is there."""
    runs: dict[RunSpec, bool] = {}
    found: dict[EvalSpec, bool] = {}

    def need_run(spec: RunSpec) -> None:
        if spec in runs:
            return
        if lab.finished(spec):
            runs[spec] = True
            return
        if spec.init is not None:
            need_run(spec.init)
        if isinstance(spec.lam_start, GridSpec):
            need_eval(spec.lam_start)
        runs[spec] = False

    def need_eval(spec: EvalSpec) -> None:
        if spec in found:
            return
        if lab.measured(spec):
            found[spec] = True
            return
        need_run(spec.run)
        if isinstance(spec, PositionsSpec) and isinstance(spec.scale, GridSpec):
            need_eval(spec.scale)
        for grid in spec.scales if isinstance(spec, LengthsSpec) else ():
            need_eval(grid)
        found[spec] = False

    for spec in evals:
        need_eval(spec)
    return Plan(
        runs=tuple(spec for spec, done in runs.items() if not done),
        evals=tuple(spec for spec, done in found.items() if not done),
        finished=sum(runs.values()) + sum(found.values()),
    )
