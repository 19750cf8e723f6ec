"""The work folder as a command finds it and leaves it."""

from __future__ import annotations

import pathlib

from experiments.workspace import Workspace


def test_a_command_of_one_process_leaves_no_mark_for_others(
    tmp_path: pathlib.Path, monkeypatch
) -> None:
    """One that is killed there could not remove it."""
    monkeypatch.setattr(pathlib.Path, 'unlink', None)
    Workspace(tmp_path).check_shared()
    assert not list(tmp_path.iterdir())
