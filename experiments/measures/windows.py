"""Loss and entropy in windows cut from the model's own data."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

from experiments import facts
from experiments.evaluations import LengthsSpec, PositionsSpec
from experiments.measures.base import Measurement
from experiments.spec import GridSpec, Windows
from nope import sharding
from nope.evals import batching, scale_grid
from nope.evals import lengths as by_length
from nope.evals import positions as by_position
from nope.interop.fold import is_neutral
from nope.records import Records

if TYPE_CHECKING:
    from experiments.lab import Lab


def check(lab: Lab, spec: GridSpec | PositionsSpec | LengthsSpec) -> None:
    lab.blocks(spec.run, spec.windows)


def grid(lab: Lab, spec: GridSpec) -> Measurement:
    def measure(folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        blocks, more = lab.blocks(spec.run, spec.windows)
        found = scale_grid.run(
            spec.model,
            lab.variables(spec.run, spec.step),
            blocks,
            spec.grid,
            train_length=spec.run.train_length,
            progress=lab.bar('scale grid'),
            **_execution(lab, spec.windows),
        )
        return found, more

    return measure


def positions(lab: Lab, spec: PositionsSpec) -> Measurement:
    scale = lab.best_scale(spec.scale)

    def measure(folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        blocks, more = lab.blocks(spec.run, spec.windows)
        variables = lab.scaled(spec.run, spec.step, scale)
        neutral = is_neutral(spec.model, variables, spec.windows.length)
        found = by_position.run(
            spec.model,
            variables,
            blocks,
            progress=lab.bar('loss and entropy'),
            **_execution(lab, spec.windows),
        )
        return found, more | facts.describe_scale(spec.run, scale, neutral)

    return measure


def lengths(lab: Lab, spec: LengthsSpec) -> Measurement:
    best: list[float | None] = [lab.best_scale(grid) for grid in spec.scales]

    def measure(folder: pathlib.Path) -> tuple[Records, dict[str, Any]]:
        blocks, more = lab.blocks(spec.run, spec.windows)
        scales = best or [None] * len(spec.lengths)
        found = by_length.run(
            spec.model,
            [lab.scaled(spec.run, None, scale) for scale in scales],
            blocks,
            spec.lengths,
            train_length=spec.run.train_length,
            progress=lab.bar('loss by length'),
            **_execution(lab, spec.windows),
        )
        return found, more

    return measure


def _execution(lab: Lab, windows: Windows) -> dict[str, Any]:
    parts = sharding.batch_parts(lab.mesh)
    rows = batching.most_rows(lab.batch_tokens, windows.length, parts)
    return {'mesh': lab.mesh, 'batch_size': rows}
