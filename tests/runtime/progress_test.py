"""Progress bars and log messages share a terminal."""

from __future__ import annotations

import io
import logging
import sys
import time

import pytest

from nope.runtime import progress


def test_a_message_stands_on_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, 'stderr', stream)
    handler = progress.AboveBars()
    with progress.bar(total=10, desc='steps', file=stream, mininterval=0) as bar:
        bar.update(3)
        handler.emit(logging.LogRecord('x', logging.INFO, '', 0, 'slow step', None, None))
        bar.update(1)
    lines = stream.getvalue().replace('\r', '\n').splitlines()
    assert 'slow step' in lines
    assert any(line.startswith('steps:  40%') for line in lines[lines.index('slow step') :])


def test_a_clock_that_is_set_back_does_not_stop_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = io.StringIO(), iter(range(2_000_000_000, 0, -100_000))
    monkeypatch.setattr('tqdm.std.time', clock.__next__)
    monkeypatch.setattr(time, 'time', clock.__next__)
    with progress.bar(total=10, desc='steps', file=stream, mininterval=0.001) as bar:
        for _ in range(5):
            time.sleep(0.01)
            bar.update(2)
        assert 0 < bar.format_dict['elapsed'] < 60
    shown = stream.getvalue().replace('\r', '\n')
    assert all(f'steps:  {share}%' in shown for share in (20, 40, 60, 80))
