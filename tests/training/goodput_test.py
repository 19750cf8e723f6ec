"""Times of earlier attempts are added to, and never end a run."""

from __future__ import annotations

import json
import pathlib
import time

import pytest

from nope.checkpoints.errors import UnwritableError
from nope.training.goodput import Goodput

EARLIER = {'attempts': 2, 'goodput': 0.5, 'seconds': {'other': 1.0, 'step': 1.0}, 'steps': 7}


def attempt(folder: pathlib.Path) -> dict:
    """What the file says after an attempt of one step."""
    times = Goodput(folder)
    with times.time('step'):
        times.step_done()
    times.write()
    return json.loads((folder / 'goodput.json').read_text())


def test_attempts_add_up(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'goodput.json').write_text(json.dumps(EARLIER))
    found = attempt(tmp_path)
    assert (found['attempts'], found['steps']) == (3, 8)
    assert found['seconds']['step'] >= 1 and found['seconds']['other'] >= 1


@pytest.mark.parametrize(
    ('error', 'counted'),
    [(RuntimeError, True), (KeyboardInterrupt, True), (OSError, False), (UnwritableError, False)],
)
def test_an_attempt_that_fails_is_counted_where_the_folder_is_surely_its_own(
    error: type[BaseException], counted: bool, tmp_path: pathlib.Path
) -> None:
    """The loss of a lease is an OSError; a folder that has vanished may be another one now."""
    with pytest.raises(error), Goodput(tmp_path) as times:
        times.step_done()
        raise error
    assert (tmp_path / 'goodput.json').exists() == counted


@pytest.mark.parametrize('content', ['', 'null', '[1]', '"x"', '[' * 100_000])
def test_a_damaged_file_is_counted_anew_and_reported(
    tmp_path: pathlib.Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / 'goodput.json'
    path.write_text(content)
    found = attempt(tmp_path)
    assert (found['attempts'], found['steps']) == (1, 1)
    assert 0 <= found['goodput'] <= 1
    assert f'{path} is damaged' in caplog.text and 'counting anew' in caplog.text


def test_a_clock_that_jumps_changes_no_time(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hands of the clock may be set while a run goes on."""
    monkeypatch.setattr(time, 'time', iter([2e9, -1e9, 5e9, 0.0] * 9).__next__)
    found = attempt(tmp_path)
    assert all(0 <= seconds < 60 for seconds in found['seconds'].values())
