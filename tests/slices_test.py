"""Meshes over several TPU slices, which a slower network joins."""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pytest

from nope.runtime import targets
from nope.sharding import MeshConfig, make_mesh

pytestmark = [
    pytest.mark.compile,
    pytest.mark.skipif(
        importlib.util.find_spec('libtpu') is None and 'NOPE_COMPILERS' not in os.environ,
        reason='libtpu is not installed',
    ),
]


@pytest.mark.parametrize(
    'sizes', [{}, {'data': None, 'fsdp': 8}, {'data': 2, 'fsdp': None}, {'fsdp': 4, 'context': 4}]
)
def test_each_slice_holds_a_part_of_the_data_axis(sizes: dict[str, int]) -> None:
    mesh = make_mesh(MeshConfig(**sizes), targets.devices('v5e:4x4:2'))
    assert mesh.size == 32 and len({d.id for d in mesh.devices.flat}) == 32
    slices = np.vectorize(lambda device: device.slice_index)(mesh.devices)
    first, second = np.split(slices, 2)  # of the data axis
    assert (first == 0).all() and (second == 1).all()


def test_another_axis_over_slices_is_refused() -> None:
    with pytest.raises(ValueError, match=r'compute\.mesh\.data is 1 over 2 slices; it must be'):
        make_mesh(MeshConfig(data=1, fsdp=32), targets.devices('v5e:4x4:2'))


@pytest.mark.parametrize('topology', ['v5e:4x4', 'v6e:4x4', 'v5p:4x4x4'])
def test_an_axis_may_take_part_of_a_side_of_the_grid(topology: str) -> None:
    found = make_mesh(MeshConfig(1, 8, 1, None), targets.devices(topology))
    assert dict(found.shape) == {'data': 1, 'fsdp': 8, 'tensor': 1, 'context': found.size // 8}


@pytest.mark.parametrize('topology', ['v5e', 'v5e:4x4:', 'v5e:4x4:0', 'h300:8', 'h200:0x8'])
def test_an_unknown_topology_is_refused(topology: str) -> None:
    with pytest.raises(ValueError, match=f"topology '{topology}' is unknown; accepted: a100"):
        targets.devices(topology)
