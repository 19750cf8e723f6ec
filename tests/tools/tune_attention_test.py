"""tools/tune_attention.py with interpreted kernels."""

from __future__ import annotations

import json
import pathlib
import time

import pytest

from nope.attention import block_sizes
from nope.attention.api import BACKENDS
from nope.attention.cases import Case, make_inputs
from nope.attention.pallas_gpu import PallasGpu
from nope.attention.pallas_gpu.programs import Blocks
from tests.tools.loading import load

tool = load('tune_attention')
CASE = Case('tiny', 1, 40, 40, 2, 1, 16)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tool.Tunable(
        lambda name, blocks: PallasGpu(interpret=True, blocks=((name, Blocks(*blocks)),)),
        {'forward': [(16, 16, 4, 1), (32, 16, 4, 1)]},
    )
    monkeypatch.setitem(tool.TUNABLE, 'interpreted', kernel)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_it_knows_every_kernel() -> None:
    kernels = {
        name
        for name, backend in BACKENDS.items()
        if backend.kernel is not None and name != 'chunked'
    }
    assert set(tool.TUNABLE) == kernels


@pytest.mark.usefixtures('interpreted')
def test_the_fastest_candidate_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    best = tool.tune('interpreted', 'forward', CASE, make_inputs(CASE), timed=True)
    found = lines(capsys)
    assert [line['blocks'] for line in found] == [[16, 16, 4, 1], [32, 16, 4, 1]]
    assert best == min(found, key=lambda line: line['seconds'])['blocks']


@pytest.mark.usefixtures('interpreted')
def test_what_the_time_leaves_out_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    now = time.perf_counter()
    assert tool.tune('interpreted', 'forward', CASE, make_inputs(CASE), True, now) is None
    (line,) = lines(capsys)
    assert line['error'] == 'left out: 2, the time is over'


def test_the_table_is_what_kernels_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / block_sizes.file_name('cpu')
    tool.write(path, 'mosaic_gpu', 'forward', CASE, [64, 100])
    tool.write(path, 'mosaic_gpu', 'd_q', CASE, [128, 200])
    monkeypatch.setattr(block_sizes, 'FOLDER', tmp_path)
    monkeypatch.setattr(block_sizes, 'target_device', lambda: ('cpu', 'cpu'))
    block_sizes._table.cache_clear()
    assert block_sizes.measured('mosaic_gpu', 'forward', 4, 16) == [64, 100]
    assert block_sizes.measured('mosaic_gpu', 'd_q', 4, 8) == [128, 200]
    assert block_sizes.measured('mosaic_gpu', 'd_q', 4, 32) is None
    block_sizes._table.cache_clear()
