"""Compiled programs: options for those that run once, and where they are kept."""

from __future__ import annotations

import os
import pathlib

import jax

FOLDER = 'jax_compilation_cache_dir'
LEVEL = 'xla_backend_optimization_level'
ONCE: dict[str, int] | None = {LEVEL: 1}


def run_once(platform: str) -> dict[str, int] | None:
    """`compiler_options` of `jax.jit` for a program that runs once, None where XLA's own are best.

    On CPUs LLVM optimises less. The fresh weights of a quick model compile in 4.9 s in place of
    7.5, to the same numbers. At level 0 some differ in the last bit. Not where XLA_FLAGS chooses a
    level.
    """
    if platform != 'cpu' or LEVEL in os.environ.get('XLA_FLAGS', ''):
        return None
    return ONCE


def keep(folder: pathlib.Path) -> None:
    """Keeps the programs of a GPU in `folder`, before the first is compiled. XLA chooses among its
    kernels by their time, so a training that goes on would else get others, and other last bits.
    Not where JAX_COMPILATION_CACHE_DIR names another folder."""
    if jax.default_backend() == 'gpu' and not getattr(jax.config, FOLDER):
        jax.config.update(FOLDER, str(folder))
        jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)
