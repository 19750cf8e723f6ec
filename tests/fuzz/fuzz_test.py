"""Whatever a user's files hold, it is read rightly or refused in words, in good time."""

from __future__ import annotations

import pathlib
import resource
import time
import zlib

import numpy as np
import pytest

from tests.fuzz.case import Target
from tests.fuzz.targets import EVERY

MOST_SECONDS = 5.0  # of a case, of the processor
MOST_KIB = 1 << 20  # by which all cases of a target may raise the peak of memory

LATE = ('lines.bombs', 'tables.tfds')  # take seconds to begin with
RUNS = [
    *(pytest.param(t, 1, id=t.name) for t in EVERY if t.name not in LATE),
    *(pytest.param(t, 30, id=f'{t.name} more', marks=pytest.mark.slow) for t in EVERY),
]


@pytest.mark.parametrize(('target', 'times'), RUNS)
def test_a_case_is_read_rightly_or_refused_by_name(
    target: Target, times: int, tmp_path: pathlib.Path
) -> None:
    case = target.make(tmp_path)
    accepted, before = 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(target.cases * times):
        draw = np.random.default_rng([times, zlib.crc32(target.name.encode()), number])
        began = time.process_time()
        try:
            accepted += case(draw)
        except BaseException as error:  # a library's panic is no Exception
            raise AssertionError(f'case {number}') from error
        assert time.process_time() - began < MOST_SECONDS, f'case {number}'
    assert accepted
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KIB
