"""Rematerialisation of a training step: the least whose program fits the device's memory."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable
from typing import Any

import jax

from nope.model import ModelConfig
from nope.runtime import processes
from nope.training.least_memory import GIB

log = logging.getLogger(__name__)

LEAST_FIRST = ('none', 'elementwise', 'dots', 'full')
# Of a device's memory, for what its allocator cannot use and for the batches that come next.
SPARE = 0.05


def of_step(model: ModelConfig, trains: str) -> ModelConfig:
    """The model with the `remat` that its step has.

    No gradient of a weight needs norms and the MLP's gate: a search of lambda, a loop over layers
    of which nothing else is recomputed, recomputes them. They would hold a third of its memory.
    """
    if trains == 'lam' and model.unroll is not None and model.remat in ('none', 'fit'):
        return dataclasses.replace(model, remat='elementwise')
    return model


def fitting(
    model: ModelConfig,
    trains: str,
    lowered: Callable[[ModelConfig], jax.stages.Lowered],
    capacity: float,
) -> ModelConfig:
    """`model` with the first `remat` of `LEAST_FIRST` whose step fits into `capacity` bytes of a
    device, or the last; itself where its `remat` is not 'fit'. Every process of a run finds the
    same.

    lowered: the step of a model. What is compiled to find out is compiled once, if the function
    that is then called is the one that was lowered.
    """
    if model.remat != 'fit':
        return model
    least = of_step(dataclasses.replace(model, remat='none'), trains).remat
    for remat in LEAST_FIRST[LEAST_FIRST.index(least) : -1]:
        tried = dataclasses.replace(model, remat=remat)
        needed = processes.together(functools.partial(_needed, lowered, tried), 'choosing remat')
        log.info('remat %r needs %.2f of %.2f GiB', remat, needed / GIB, capacity / GIB)
        if all(processes.exchange(needed <= (1 - SPARE) * capacity, 'the choice of remat')):
            return tried
    log.info('remat %r: nothing else fits', LEAST_FIRST[-1])
    return dataclasses.replace(model, remat=LEAST_FIRST[-1])


def _needed(lowered: Callable[[ModelConfig], jax.stages.Lowered], model: ModelConfig) -> float:
    """Bytes of a device; infinite where the compiler finds that no memory holds the program."""
    try:
        return program_bytes(lowered(model).compile().memory_analysis())
    except jax.errors.JaxRuntimeError as error:
        if 'RESOURCE_EXHAUSTED' not in str(error):
            raise
        return float('inf')


def program_bytes(memory: Any) -> float:
    """Bytes of a device that a compiled program needs by its memory analysis, its arguments and
    results included; infinite where there is none."""
    if memory is None:
        return float('inf')
    return float(
        memory.argument_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
    )
