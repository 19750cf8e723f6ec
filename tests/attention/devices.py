"""Devices that programs are traced for, and that are not there."""

from __future__ import annotations

import contextlib
import inspect

import jax
from jax.sharding import AbstractDevice, AbstractMesh, AxisType


def on_device(kind: str, platform: str) -> contextlib.AbstractContextManager:
    """A context in which programs are traced for one device of that kind."""
    facts = {'device_kind': kind, 'num_cores': 1, 'platform': platform}
    known = inspect.signature(AbstractDevice).parameters  # no platform before JAX 0.10
    device = AbstractDevice(**{name: fact for name, fact in facts.items() if name in known})
    mesh = AbstractMesh((1,), ('x',), axis_types=(AxisType.Auto,), abstract_device=device)
    return jax.sharding.use_abstract_mesh(mesh)
