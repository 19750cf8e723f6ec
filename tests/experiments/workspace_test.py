"""The work folder as a command finds it and leaves it."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Iterator

import pytest

from experiments.workspace import Workspace

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    """A work folder of a user whom modes bind, as they do not bind root."""
    with tempfile.TemporaryDirectory() as name:
        root = os.geteuid() == 0
        if root:
            os.chown(name, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            yield pathlib.Path(name)
        finally:
            if root:
                os.seteuid(0)


def test_a_file_in_the_place_of_a_work_folder_is_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'work').write_text('')
    with pytest.raises(ValueError, match=r'^--workdir=.*/work is a file; accepted: a folder$'):
        Workspace(tmp_path / 'work')


def test_a_command_of_one_process_leaves_no_mark_for_others(
    tmp_path: pathlib.Path, monkeypatch
) -> None:
    """One that is killed there could not remove it."""
    monkeypatch.setattr(pathlib.Path, 'unlink', None)
    Workspace(tmp_path).check_shared()
    assert not list(tmp_path.iterdir())


def test_what_can_be_written_is_not_refused_and_not_made(folder: pathlib.Path) -> None:
    (folder / 'figures').mkdir()
    paths = [folder / 'figures/fig1', folder / 'runs/RUN', folder / 'commands.jsonl']
    Workspace(folder).check_writable(paths)
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize('mode', [0o555, 0o666])  # nothing can be made there, nor found
def test_a_folder_of_another_user_is_refused(folder: pathlib.Path, mode: int) -> None:
    (folder / 'figures/fig1').mkdir(parents=True)
    (folder / 'figures').chmod(mode)
    with pytest.raises((ValueError, PermissionError), match='figures'):
        Workspace(folder).check_writable([folder / 'runs/RUN', folder / 'figures/fig2'])
    (folder / 'figures').chmod(0o755)


def test_a_file_of_another_user_is_refused_by_name(folder: pathlib.Path) -> None:
    (folder / 'commands.jsonl').touch(0o444)
    with pytest.raises(ValueError, match=r'commands\.jsonl cannot be written to'):
        Workspace(folder).check_writable([folder / 'commands.jsonl'])
