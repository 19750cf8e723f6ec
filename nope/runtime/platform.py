"""Target platform of a traced program, which may differ from this machine's."""

from __future__ import annotations

from typing import Any

import jax


def target_device() -> tuple[str, str]:
    """(platform, kind) of the devices that the program being traced is for: those of the current
    mesh, or else JAX's default device. Arguments that were put elsewhere are not seen."""
    device = getattr(jax.sharding.get_abstract_mesh(), 'abstract_device', None)
    if device is None:
        config: Any = jax.config
        device = config.jax_default_device or jax.devices()[0]
        if isinstance(device, str):
            device = jax.devices(device)[0]
    kind = device.device_kind
    platform = getattr(device, 'platform', None)
    if platform is None:  # of a mesh before JAX 0.10
        platform = next((name for name in ('cpu', 'tpu') if kind.lower().startswith(name)), 'gpu')
    return ('gpu' if platform in ('cuda', 'rocm') else platform), kind
