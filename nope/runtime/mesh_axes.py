"""Mesh axes of logical ones, for the program that is being traced."""

from __future__ import annotations

import math
from typing import Any

import flax.linen as nn
import jax


def axes_of(name: str) -> Any:
    """Mesh axes of a logical one under the current rules; None without rules."""
    spec = nn.logical_to_mesh_axes((name,))
    return None if spec is None else spec[0]


def parts_of(axes: Any) -> int:
    """Into how many parts the current mesh splits what lies along these axes."""
    sizes = dict(jax.sharding.get_abstract_mesh().shape)
    names = (axes,) if isinstance(axes, str) else tuple(axes or ())
    return math.prod(sizes.get(name, 1) for name in names)
