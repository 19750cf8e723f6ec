"""Target devices for ahead-of-time compilation, without the devices.

TPUs need `libtpu` to be installed, GPUs the packages `jax-cuda13-plugin` and `jax-cuda13-pjrt`
(Python 3.12, no CUDA), and JAX_PLATFORMS=cpu keeps both from being looked for on this machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import math
import os
import re
from typing import Any

import jax
from jax.experimental import topologies


@dataclasses.dataclass(frozen=True)
class _Gpu:
    """Data sheet of a GPU: bytes, bytes per second, GHz. threads: of a core at a time."""

    kind: str
    capability: tuple[int, int]
    cores: int
    lanes: int
    shared_memory: int
    shared_memory_per_block: int
    bandwidth: int
    cache: int
    clock: float
    memory: int
    threads: int = 2048

    def describe(self) -> str:
        """Text form of XLA's GpuTargetConfigProto."""
        return f"""
            gpu_device_info {{
              cuda_compute_capability {{ major: {self.capability[0]} minor: {self.capability[1]} }}
              core_count: {self.cores}
              fpus_per_core: {self.lanes}
              threads_per_warp: 32
              threads_per_block_limit: 1024
              threads_per_core_limit: {self.threads}
              registers_per_block_limit: 65536
              registers_per_core_limit: 65536
              shared_memory_per_block: 49152
              shared_memory_per_block_optin: {self.shared_memory_per_block}
              shared_memory_per_core: {self.shared_memory}
              block_dim_limit_x: 2147483647
              block_dim_limit_y: 65535
              block_dim_limit_z: 65535
              memory_bandwidth: {self.bandwidth}
              l2_cache_size: {self.cache}
              clock_rate_ghz: {self.clock}
              device_memory_size: {self.memory}
            }}
            platform_name: "CUDA"
            dnn_version_info {{ major: 9 minor: 10 }}
            device_description_str: "{self.kind}"
        """


_HOPPER = (9, 0), 132, 128, 233472, 232448
_GPUS = {
    'a100': _Gpu(
        'NVIDIA A100', (8, 0), 108, 64, 167936, 166912, 2039 * 10**9, 40 * 2**20, 1.41, 80 * 10**9
    ),
    'h100': _Gpu('NVIDIA H100', *_HOPPER, 3352 * 10**9, 50 * 2**20, 1.98, 80 * 10**9),
    'h200': _Gpu('NVIDIA H200', *_HOPPER, 4800 * 10**9, 60 * 2**20, 1.98, 141 * 10**9),
    'rtx4090': _Gpu(
        *('NVIDIA GeForce RTX 4090', (8, 9), 128, 128, 102400, 101376),
        *(1008 * 10**9, 72 * 2**20, 2.52, 24 * 10**9, 1536),
    ),
}


def compiler(topology: str) -> str:
    """Package and version of what compiles for a topology that `devices` takes: what a program
    needs differs between versions. 'unknown' where it was not installed as a package."""
    gpu = topology.partition(':')[0] in _GPUS
    for package in ('jax-cuda13-plugin', 'jax-cuda12-plugin') if gpu else ('libtpu',):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f'{package} {importlib.metadata.version(package)}'
    return 'unknown'


def devices(topology: str) -> list[jax.Device]:
    """Devices of 'NAME:SIZE'. TPUs name the chips of a grid ('v5e:4x4', 'v5p:2x2x1') and perhaps
    the number of slices ('v5e:4x4:2'). GPUs name the number on one machine ('h200:8') or on each of
    several ('h200:2x8').

    Raises ValueError for a GPU that is not known, RuntimeError (by JAX) for a TPU that is not, or
    where what is to be installed is not.
    """
    name, _, size = topology.partition(':')
    gpus = re.fullmatch(r'(?:([1-9]\d*)x)?([1-9]\d*)', size or '1')
    if name in _GPUS and gpus:
        machines, each = gpus.groups(default='1')
        return list(
            topologies.get_topology_desc(
                '', 'cuda', target_config=_GPUS[name].describe(), topology=f'{machines}x1x{each}'
            ).devices
        )
    found = re.fullmatch(r'(?:v\d+[a-z]*|tpu\d+x):(\d+(?:x\d+)*)(?::([1-9]\d*))?', topology)
    if not found:
        raise ValueError(
            f'topology {topology!r} is unknown; accepted: {", ".join(_GPUS)}, each with a number '
            '(h200:8) or machines and their number of them (h200:2x8), or a TPU with its grid of '
            'chips (v5e:4x4) and their slices (v5e:4x4:2)'
        )
    # Else the metadata of a cloud machine is waited for, and other compilations on this one.
    os.environ.setdefault('TPU_SKIP_MDS_QUERY', '1')
    os.environ.setdefault('ALLOW_MULTIPLE_LIBTPU_LOAD', '1')
    grid, slices = found.groups()
    options: dict[str, Any] = {'num_slices': int(slices)} if slices else {}
    if math.prod(int(side) for side in grid.split('x')) == 1:
        options['chips_per_host_bounds'] = (1, 1, 1)
    grid_name = f'{name}:{grid}'
    return list(topologies.get_topology_desc(grid_name, 'tpu', **options).devices)
