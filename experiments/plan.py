"""What a work folder still lacks for an experiment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from experiments.evaluations import EvalSpec, eval_slug
from experiments.lab import Lab
from experiments.spec import ImportSpec, RunSpec, Source, needs


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


def make_plan(lab: Lab, wanted: Iterable[Source | EvalSpec]) -> Plan:
    """Walks what evaluations and exported runs need and asks the lab what of it is there."""
    there: dict[RunSpec | EvalSpec, bool] = {}

    def visit(spec: Source | EvalSpec) -> None:
        if isinstance(spec, ImportSpec) or spec in there:
            return
        done = lab.finished(spec) if isinstance(spec, RunSpec) else lab.measured(spec)
        for part in () if done else needs(spec):
            visit(part)
        there[spec] = done

    for spec in wanted:
        visit(spec)
    missing = [spec for spec, done in there.items() if not done]
    return Plan(
        runs=tuple(spec for spec in missing if isinstance(spec, RunSpec)),
        evals=tuple(spec for spec in missing if not isinstance(spec, RunSpec)),
        finished=len(there) - len(missing),
    )
