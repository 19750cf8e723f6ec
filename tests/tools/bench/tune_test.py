"""tools.bench.tune with interpreted kernels."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nope.attention import block_sizes
from nope.attention.api import BACKENDS
from nope.attention.cases import Trial, make_inputs
from nope.attention.pallas_gpu import PallasGpu
from nope.attention.pallas_gpu.programs import Blocks
from tools.bench import tune as tool

CASE = Trial('tiny', 1, 40, 40, 2, 1, 16)
NOW = (16, 32, 4, 1)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str, blocks: Sequence[int]) -> PallasGpu:
        return PallasGpu(interpret=True, blocks=((name, Blocks(*blocks)),))

    candidates = [(32, 16, 4, 1), (16, 16, 4, 1), (16, 32, 4, 1)]
    kernel = tool.Tunable(make('forward', NOW), make, (16, 16, 4, 1), {'forward': candidates})
    monkeypatch.setitem(tool.TUNABLE, 'interpreted', kernel)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_it_knows_every_kernel_and_guesses_a_candidate() -> None:
    kernels = {name for name, backend in BACKENDS.items() if backend.kernel is not None}
    assert set(tool.TUNABLE) == kernels - {'chunked'}
    for tunable in tool.TUNABLE.values():
        for kind_of_pass in tunable.candidates:
            assert tunable.outwards(kind_of_pass)[0] == tunable.guess


@pytest.mark.usefixtures('interpreted')
@pytest.mark.parametrize(('times', 'best'), [
    ((3.0, 2.0, 1.0), [32, 16, 4, 1]),
    ((1.0, 0.99, 1.01), None),
    (('fails', 1.0, 1.0), None),
])  # fmt: skip
def test_a_candidate_that_is_faster_than_the_kernel_as_it_is_is_kept(
    times: tuple[Any, ...], best: list[int] | None, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = iter(times)

    def seconds(call: Callable[[], object]) -> float:
        call()
        found = next(taken)
        if found == 'fails':
            raise RuntimeError('an illegal address')
        return found

    monkeypatch.setattr(tool, 'seconds', seconds)
    assert tool.tune('interpreted', 'forward', CASE, make_inputs(CASE), timed=True) == best
    found = lines(capsys)
    # Nearest to the guess first; the blocks that it has now are not tried again.
    assert [x['blocks'] for x in found] == ['as they are', [16, 16, 4, 1], [32, 16, 4, 1]]
    failed = {'fails': 'RuntimeError: an illegal address'}
    assert [x.get('seconds', x.get('error')) for x in found] == [failed.get(t, t) for t in times]


@pytest.mark.usefixtures('interpreted')
def test_what_the_time_leaves_out_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    now = time.perf_counter()
    assert tool.tune('interpreted', 'forward', CASE, make_inputs(CASE), True, now) is None
    (line,) = lines(capsys)
    assert line['error'] == 'left out: 4, the time is over'


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
