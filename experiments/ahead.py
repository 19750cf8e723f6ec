"""Programs of an experiment ahead of time, each with the mesh it runs on.

They are for compilation, and for the check that the model's attention can run them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import jax
from jax.sharding import Mesh

from experiments.build import Experiment
from experiments.evaluations import EvalSpec
from experiments.evaluations.base import most_rows
from experiments.programs import Program, Step, answering
from experiments.runs import RunSpec
from experiments.specs import Spec
from nope import sharding
from nope.attention.api import Unsupported
from nope.training.config import Compute


def programs(experiment: Experiment, devices: list[jax.Device]) -> Iterator[tuple[Program, Mesh]]:
    """Programs that the experiment runs on the devices, with repetitions."""

    def of(spec: Spec) -> Iterator[tuple[Program, Mesh]]:
        yield from of_piece(spec, experiment.compute, experiment.batch_tokens, devices)
        for part in spec.needs:
            yield from of(part)

    for spec in experiment.evals.values():
        yield from of(spec)


def of_piece(
    spec: Spec, compute: Compute, batch_tokens: int, devices: list[jax.Device] | None = None
) -> Iterator[tuple[Program, Mesh]]:
    """Programs of one run or evaluation on the devices (None: all that are present)."""
    first, later = (compute.mesh_of(later, devices) for later in (False, True))
    if isinstance(spec, RunSpec):
        train, mesh = spec.train, later if spec.init else first
        micro = spec.compute(compute).micro_batches(train.batch_size, mesh)
        shape = train.block, train.batch_size, micro
        arrays = spec.data.arrays
        if not spec.model.causal:
            arrays = (*arrays, 'segments')
        yield Step(spec.model, train.optimizer, *shape, arrays=arrays), mesh
        if spec.earlier is not None:
            yield Step(spec.earlier.model, train.optimizer, *shape, arrays=arrays), mesh
        if train.validation is not None:
            rows = most_rows(batch_tokens, mesh)
            yield answering(spec.model, train.block + 1, rows), mesh
    elif isinstance(spec, EvalSpec):
        for program in spec.programs(most_rows(batch_tokens, later)):
            yield program, later


def check_attention(spec: RunSpec | EvalSpec, compute: Compute, batch_tokens: int) -> None:
    """ValueError, naming the field, where the attention that the model names cannot run one of the
    programs of the run or evaluation."""
    name = spec.model.attention
    if name is None:  # one that can is chosen
        return
    typed = spec.typed if isinstance(spec, RunSpec) else spec.run.typed
    for program, mesh in of_piece(spec, compute, batch_tokens):
        reason = _refused(program, mesh)
        if reason is not None:
            raise ValueError(
                f'{typed.attention} is {name!r}, which cannot {program.describe()}: {reason}'
            )


@functools.cache
def _refused(program: Program, mesh: Mesh) -> str | None:
    """Reason for which the attention backend that the model names refuses the program, or None."""
    try:
        with sharding.use(mesh, program.rules):
            program.trace(mesh)
    except Unsupported as error:
        return error.reason
    return None
