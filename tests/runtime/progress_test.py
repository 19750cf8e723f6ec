"""Progress bars and log messages share a terminal."""

from __future__ import annotations

import io
import logging
import sys

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
