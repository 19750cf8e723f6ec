"""How much a step computes again in its backward pass: as little as the device's memory allows."""

from __future__ import annotations

import dataclasses
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


def fitting(
    model: ModelConfig, lowered: Callable[[ModelConfig], jax.stages.Lowered], capacity: float
) -> ModelConfig:
    """`model` with the first `remat` of `LEAST_FIRST` whose program fits into `capacity` bytes of a
    device, or the last; itself where its `remat` is not 'fit'. Every process of a run finds the
    same.

    lowered: the program of a model. What is compiled to find out is compiled once, if the function
    that is then called is the one that was lowered.
    """
    if model.remat != 'fit':
        return model
    for remat in LEAST_FIRST[:-1]:
        tried = dataclasses.replace(model, remat=remat)
        needed = program_bytes(lowered(tried))
        log.info('remat %r needs %.2f of %.2f GiB', remat, needed / GIB, capacity / GIB)
        if all(processes.exchange(needed <= (1 - SPARE) * capacity, 'the choice of remat')):
            return tried
    log.info('remat %r', LEAST_FIRST[-1])
    return dataclasses.replace(model, remat=LEAST_FIRST[-1])


def program_bytes(lowered: jax.stages.Lowered) -> float:
    """Bytes of a device that a compiled program needs, its arguments and results included; infinite
    where its compiler finds that no memory holds it."""
    try:
        memory: Any = lowered.compile().memory_analysis()
    except jax.errors.JaxRuntimeError as error:
        if 'RESOURCE_EXHAUSTED' not in str(error):
            raise
        return float('inf')
    return float(
        memory.argument_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
    )
