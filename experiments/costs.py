"""Least work of pieces by arithmetic: FLOPs, time on a device at its peak, memory of the state.

FLOPs are those of MFU (`nope.model.counts`): matrix products and the keys that queries see,
nothing recomputed. An evaluation's are those of the sequences it reads, where its spec says how
many. Generated tokens, and samples that only a data set's files tell, are not counted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from experiments.evaluations import EvalSpec
from experiments.plan import Names, titled
from experiments.runs import RunSpec
from experiments.specs import Spec
from nope.model import counts
from nope.runtime.hardware import Target
from nope.training.config import TrainConfig
from nope.training.least_memory import FLOAT32, GIB, state_bytes

HOUR = 3600.0


@dataclasses.dataclass(frozen=True)
class Cost:
    """Least work of a piece. flops: None where they are not known. state: bytes of the parameters,
    and in training of the optimizer too; 0 for an export."""

    flops: float | None
    state: float = 0.0


def cost(spec: Spec) -> Cost:
    """Least work of a piece."""
    if isinstance(spec, RunSpec):
        return Cost(training_flops(spec), state_bytes(spec.model, spec.train))
    if not isinstance(spec, EvalSpec):
        return Cost(0.0)
    flops = None
    if spec.reads is not None:
        read = spec.reads.items()
        flops = sum(
            n * length * counts.training_flops(spec.model, length) / 3 for length, n in read
        )
    return Cost(flops, float(FLOAT32 * counts.parameters(spec.model)))


def training_flops(spec: RunSpec) -> float:
    """FLOPs of all steps of a run; frozen weights need no gradients of their own."""
    earlier = 0 if spec.earlier is None else spec.earlier.steps
    found = _flops(spec.train, earlier, spec.train.steps, spec)
    if spec.earlier is not None:
        early = dataclasses.replace(spec, model=spec.earlier.model, earlier=None)
        found += _flops(spec.train, 0, earlier, early)
    return found


def _flops(train: TrainConfig, start: int, stop: int, spec: RunSpec) -> float:
    """Of the steps start .. stop - 1, whose lengths are taken in turn."""
    lengths = train.lengths
    total = 0.0
    for place, length in enumerate(lengths):
        steps = len(range(place, stop, len(lengths))) - len(range(place, start, len(lengths)))
        frozen = train.optimizer.freezes
        total += steps * length * counts.training_flops(spec.model, length, frozen=frozen)
    return train.batch_size * total


def table(pieces: Sequence[Spec], target: Target, names: Names) -> str:
    """One line a piece with its least work on one device of `target` and the evaluations' names,
    and the sums over all."""
    rows = []
    for spec, title in zip(pieces, titled(pieces, names), strict=True):
        found = cost(spec)
        hours = '?' if found.flops is None else f'{found.flops / target.flops / HOUR:,.4g}'
        state = f'{found.state / GIB:.3f}' if found.state else ''
        rows.append(f'  {hours:>12}  {state:>11}  {title}')
    return '\n'.join(['  device hours  state (GiB)', *rows, sums(pieces, target)])


def sums(pieces: Sequence[Spec], target: Target) -> str:
    """Least work of all pieces together on the devices of `target`."""
    found = [(spec, cost(spec).flops) for spec in pieces]
    trained = sum(flops or 0.0 for spec, flops in found if isinstance(spec, RunSpec))
    measured = sum(flops or 0.0 for spec, flops in found if isinstance(spec, EvalSpec))
    unknown = sum(flops is None for _, flops in found)
    left = (
        f', {unknown} of them, whose examples are counted when they are read, left out'
        if unknown
        else ''
    )
    total = (trained + measured) / target.flops / HOUR
    wall = f', {total / target.count:,.4g} hours of {target.count}' if target.count > 1 else ''
    return (
        f'training {trained:.4g} FLOPs, evaluations {measured:.4g}{left}\n'
        f'at least {total:,.4g} device hours{wall} on {target.name}, '
        f'at {target.flops / 1e12:.4g} TFLOP/s {target.rate}'
    )
