"""Block sizes measured on a device are the ones its kernels take."""

from __future__ import annotations

import functools
import json
import pathlib

import jax
import pytest

from nope.attention import attention, block_sizes
from nope.attention.cases import Trial, abstract_inputs
from nope.attention.pallas_tpu.sizes import TpuBlocks
from nope.runtime import targets
from tests.attention.devices import on_device

TABLE = {
    'pallas_tpu': {
        'forward': {'2': {'64': [256, 1024, 128], '128': [128, 512, 128]}},
        'backward': {'4': {'64': [512, 512, 128]}},
    }
}


@pytest.fixture
def tuned(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    """A folder with a table for one kind of TPU, and a program traced for such a one."""
    (tmp_path / 'tpu_v5_lite.json').write_text(json.dumps(TABLE))
    monkeypatch.setattr(block_sizes, 'FOLDER', tmp_path)
    block_sizes._table.cache_clear()
    with on_device('TPU v5 lite', 'tpu'):
        yield
    block_sizes._table.cache_clear()


def test_a_head_dim_takes_the_next_larger_ones(tuned: None) -> None:
    found = [block_sizes.measured('pallas_tpu', 'forward', 2, size) for size in (32, 64, 80, 129)]
    assert found == [[256, 1024, 128], [256, 1024, 128], [128, 512, 128], None]
    assert block_sizes.measured('pallas_tpu', 'forward', 4, 64) is None
    assert block_sizes.measured('pallas_tpu', 'backward', 2, 64) is None
    assert block_sizes.measured('pallas_gpu', 'forward', 2, 64) is None


def test_the_kernel_has_blocks_of_the_table(tuned: None) -> None:
    inputs = abstract_inputs(Trial('', 1, 2048, 2048, 2, 2, 64, causal=False, dtype='bfloat16'))

    def run(q, k, v):
        return attention(q, k, v, mask=inputs.mask, implementation='pallas_tpu').out

    program = str(jax.make_jaxpr(run)(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH))
    # 8 blocks of 256 queries with 2 of 1,024 keys each.
    assert 'grid=(1, 2, 16)' in program


def test_blocks_are_chosen_before_they_are_measured(tuned: None) -> None:
    chosen = (('forward', TpuBlocks(512, 512, 512)),)
    given = functools.partial(block_sizes.given, 'pallas_tpu', blocks=TpuBlocks)
    assert given('forward', chosen, itemsize=2, head_dim=64) == TpuBlocks(512, 512, 512)
    assert given('forward', (), itemsize=2, head_dim=64) == TpuBlocks(256, 1024, 128)
    assert given('backward', chosen, itemsize=4, head_dim=64) == TpuBlocks(512, 512, 128)
    assert given('backward', chosen, itemsize=2, head_dim=64) is None


@pytest.mark.parametrize(('there', 'name'), [
    ('NVIDIA H100 80GB HBM3', 'h100.json'), ('NVIDIA L4', 'nvidia_l4.json'),
    ('TPU v5 lite', 'tpu_v5_lite.json'), ('TPU v5', 'tpu_v5.json'),
])  # fmt: skip
def test_names_of_tables(there: str, name: str) -> None:
    assert block_sizes.file_name(there) == name


@pytest.mark.parametrize(('compiled_for', 'there'), [
    ('h100', 'NVIDIA H100 80GB HBM3'), ('h200', 'NVIDIA H200'), ('a100', 'NVIDIA A100-SXM4-80GB'),
    ('rtx4090', 'NVIDIA GeForce RTX 4090'),
])  # fmt: skip
def test_a_device_that_is_compiled_for_has_the_table_of_one_that_is_there(
    compiled_for: str, there: str
) -> None:
    kind = targets._GPUS[compiled_for].kind
    assert block_sizes.file_name(kind) == block_sizes.file_name(there)
