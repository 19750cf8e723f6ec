"""Libraries' messages go to a file that is named once."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Iterator

import pytest

from nope.runtime import library_log


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in library_log.LIBRARIES]
    before = [(x, x.level, x.propagate, list(x.handlers)) for x in loggers]
    yield
    for logger, level, propagate, handlers in before:
        logger.setLevel(level)
        logger.propagate, logger.handlers = propagate, handlers


def test_warnings_go_to_the_file_alone(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / 'work' / 'libraries.log'
    library_log.collect(path)
    logging.getLogger('absl').info('saving')
    assert not path.parent.exists(), 'a command whose libraries are silent leaves no file'
    for number in range(3):
        logging.getLogger('asyncio').error('task %d\nTraceback', number)
    assert [record.getMessage() for record in caplog.records] == [f'libraries say more in {path}']
    assert 'Traceback' not in capfd.readouterr().err
    assert path.read_text().count('asyncio task ') == 3


def test_a_second_command_of_a_process_has_its_own_file(tmp_path: pathlib.Path) -> None:
    for name in ('one', 'two'):
        library_log.collect(tmp_path / name)
        logging.getLogger('absl').warning('from %s', name)
    assert 'from two' not in (tmp_path / 'one').read_text()
    assert 'from two' in (tmp_path / 'two').read_text()


def test_a_file_that_cannot_be_written_loses_messages_and_nothing_else(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library_log.collect(tmp_path)  # a folder
    logging.getLogger('absl').warning('lost')
    assert 'lost' not in capfd.readouterr().err
