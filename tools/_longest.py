"""Choice of the longest of programs that differ in shape alone, for ahead-of-time compilation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from jax.sharding import Mesh

from experiments.programs import Continuing, Program, Step
from nope.evals.generation import Options
from nope.model import ModelConfig
from nope.positions import Rotary, Unscaled

# Numbers of an optimizer that change no shape and no operation.
SCHEDULE: dict[str, Any] = {
    'learning_rate': 1.0,
    'schedule': 'cosine',
    'warmup_steps': 0,
    'decay_steps': 1,
    'tail_share': 0.0,
    'end_share': 0.0,
    'b2': 0.0,
}


def longest(programs: Mapping[tuple[Program, Mesh], str]) -> dict[tuple[Program, Mesh], str]:
    """Of programs that differ in lengths, batch and numbers that no array's shape follows alone,
    those with the longest rows: a rotary scaling's numbers, a schedule's, a decoder's limits."""
    found: dict[Any, tuple[Program, Mesh]] = {}
    for program, mesh in programs:
        kind = _kind(program), mesh
        if kind not in found or _reach(program) > _reach(found[kind][0]):
            found[kind] = program, mesh
    return {key: programs[key] for key in found.values()}


def _kind(program: Program) -> Any:
    """Key of programs that differ in shape and numbers alone."""
    model, scaling = _without_scaling(program.model)
    changes: dict[str, Any] = {'model': model, 'length': 0, 'batch': 0}
    if isinstance(program, Step):
        changes['accumulate'] = None
        changes['optimizer'] = dataclasses.replace(program.optimizer, **SCHEDULE)
    if isinstance(program, Continuing):
        options = program.options
        changes['options'] = Options(
            1, beams=options.beams, temperature=options.temperature, top_k=options.top_k
        )
    return dataclasses.replace(program, **changes), scaling


def _reach(program: Program) -> int:
    """Tokens of a row, with those that continue it."""
    return program.length + (program.options.new_tokens if isinstance(program, Continuing) else 0)


def _without_scaling(model: ModelConfig) -> tuple[ModelConfig, type | None]:
    """The model with rotary frequencies as trained, and its scaling's kind."""
    position = model.position
    if not isinstance(position, Rotary):
        return model, None
    unscaled = dataclasses.replace(position, scaling=Unscaled())
    return dataclasses.replace(model, position=unscaled), type(position.scaling)
