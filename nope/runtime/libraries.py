"""Libraries that are loaded at their first use: most commands end, or have long begun, without one.

Orbax, Optax and Pallas are a quarter of what a command would load before its first line. The names
here are those that the libraries' users know; each stands for its module.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any


class Late:
    """Module that the first attribute asked of it imports: an ImportError comes then."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Installed versions by package, of those that are installed."""
    found = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


if TYPE_CHECKING:
    import optax
    import orbax.checkpoint as ocp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import triton
else:
    optax = Late('optax')
    ocp = Late('orbax.checkpoint')
    pl = Late('jax.experimental.pallas')
    pltpu = Late('jax.experimental.pallas.tpu')
    triton = Late('jax.experimental.pallas.triton')

__all__ = ['Late', 'ocp', 'optax', 'pl', 'pltpu', 'triton', 'versions']
