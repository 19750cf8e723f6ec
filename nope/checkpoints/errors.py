"""Errors of checkpoints, and what is none of theirs: memory that runs out."""

from __future__ import annotations

import jax


class CheckpointError(RuntimeError):
    """A checkpoint that is damaged, or that belongs to something else."""


class UnwritableError(CheckpointError):
    """A checkpoint could not be written; those before it are as they were."""


class OtherRunError(CheckpointError):
    """A checkpoint of a run with another config or base model, or of other arrays."""


def is_shortage(error: BaseException | None) -> bool:
    """Whether the host or a device ran out of memory: no damage of the file."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, jax.errors.JaxRuntimeError) and 'RESOURCE_EXHAUSTED' in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
