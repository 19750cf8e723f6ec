"""Options of XLA for programs that run once: to compile them is what they take."""

from __future__ import annotations

import os

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
