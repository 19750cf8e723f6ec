"""Programs of an experiment, for compilation ahead of time: each with the mesh it runs on."""

from __future__ import annotations

from collections.abc import Iterator

import jax
from jax.sharding import Mesh

from experiments.build import Experiment
from experiments.evaluations import EvalSpec
from experiments.evaluations.base import most_rows
from experiments.programs import Program, Scoring, Step
from experiments.runs import RunSpec
from experiments.specs import Spec


def programs(experiment: Experiment, devices: list[jax.Device]) -> Iterator[tuple[Program, Mesh]]:
    """Programs that the experiment runs on the devices, with repetitions."""
    compute = experiment.compute
    first, later = (compute.mesh_of(later, devices) for later in (False, True))
    rows = most_rows(experiment.batch_tokens, later)

    def of(spec: Spec) -> Iterator[tuple[Program, Mesh]]:
        if isinstance(spec, RunSpec):
            train, mesh = spec.train, later if spec.init else first
            micro = spec.compute(compute).micro_batches(train.batch_size, mesh)
            shape = train.block, train.batch_size, micro
            arrays = spec.data.arrays
            yield Step(spec.model, train.optimizer, *shape, arrays=arrays), mesh
            if spec.earlier is not None:
                yield Step(spec.earlier.model, train.optimizer, *shape, arrays=arrays), mesh
            if train.validation is not None:
                length = train.block + 1
                size = most_rows(experiment.batch_tokens, mesh)(length, Scoring.rules)
                yield Scoring(spec.model, length, size, length), mesh
        elif isinstance(spec, EvalSpec):
            for program in spec.programs(rows):
                yield program, later
        for part in spec.needs:
            yield from of(part)

    for spec in experiment.evals.values():
        yield from of(spec)
