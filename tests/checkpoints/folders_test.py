"""Where the checkpoints of a run lie."""

from __future__ import annotations

import errno
import os
import pathlib

import pytest

from nope.checkpoints import folders


def test_they_lie_in_the_runs_folder_where_nothing_else_is_asked(tmp_path: pathlib.Path) -> None:
    run = tmp_path / 'run'
    assert folders.settle(run, None) == folders.of_run(run)
    assert folders.of_run(run) == folders.in_full(run / 'checkpoints')
    assert not run.exists()


def test_another_place_is_remembered(tmp_path: pathlib.Path) -> None:
    run, place = tmp_path / 'run', 'gs://bucket/work/run/checkpoints'
    for _ in range(2):
        assert str(folders.settle(run, place)) == place
    assert str(folders.of_run(run)) == place


def test_a_run_does_not_change_its_place(tmp_path: pathlib.Path) -> None:
    away, here = tmp_path / 'away', tmp_path / 'here'
    folders.settle(away, 'gs://bucket/away')
    (here / 'checkpoints').mkdir(parents=True)
    for run, other in ((away, None), (away, tmp_path), (here, 'gs://bucket/here')):
        with pytest.raises(ValueError, match=r'compute\.checkpoints.* there are some in'):
            folders.settle(run, other)


def test_a_place_that_cannot_be_written_is_named(tmp_path: pathlib.Path) -> None:
    folders.check_writable(str(tmp_path / 'studies'))
    assert list((tmp_path / 'studies').iterdir()) == []
    (tmp_path / 'file').write_text('')
    message = r"compute\.checkpoints is '.*/file/studies'; nothing can be written there: "
    with pytest.raises(ValueError, match=message):
        folders.check_writable(str(tmp_path / 'file' / 'studies'))


class _Unavailable(OSError):
    code = 503


@pytest.mark.parametrize(
    ('error', 'passes'),
    [
        (OSError(errno.ESTALE, 'stale'), True),
        (_Unavailable('of a bucket'), True),
        (RuntimeError('no credentials yet'), True),
        (OSError('Forbidden'), False),
        (PermissionError(errno.EACCES, 'denied'), False),
        (ImportError('no gcsfs'), False),
    ],
)
def test_storage_that_fails_for_a_moment_is_no_bad_input(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, error: Exception, passes: bool
) -> None:
    def fail(place: str) -> None:
        raise error

    class Place:
        parent = property(fail)

        def __truediv__(self, name: str) -> Place:
            return self

    monkeypatch.setattr(folders, 'in_full', lambda place: Place())
    with pytest.raises(OSError if passes else ValueError, match='nothing can be written') as found:
        folders.check_writable('gs://bucket')
    assert getattr(found.value, 'errno', None) == (errno.EIO if passes else None)


def test_another_folder_of_the_same_name_is_told_apart(tmp_path: pathlib.Path) -> None:
    folder = folders.in_full(tmp_path / 'folder')
    assert folders.mark(folder) is None
    folder.mkdir()
    before = folders.mark(folder)
    assert before == folders.mark(folder)
    folder.rename(tmp_path / 'moved')
    folder.mkdir()
    assert folders.mark(folder) != before


def test_what_somebody_still_writes_to_is_out_of_the_way(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one that was taken for killed: its folder cannot be emptied, and ends no other command."""
    left = tmp_path / '6.orbax-checkpoint-tmp'
    left.mkdir()

    def fail(*_: object, **__: object) -> None:
        raise OSError('directory not empty')

    with monkeypatch.context() as patched:
        patched.setattr(os, 'rmdir', fail)
        folders.sweep(folders.in_full(tmp_path))
    assert not left.exists()
    folders.sweep(folders.in_full(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_folder_moves_over_one_that_is_there(tmp_path: pathlib.Path) -> None:
    source, target = (folders.in_full(tmp_path / name) for name in ('a', 'b/a'))
    for folder, text in ((source, 'new'), (target, 'old')):
        (folder / 'inner').mkdir(parents=True)
        (folder / 'inner' / 'file').write_text(text)
    (target / 'left').write_text('over')
    folders.move(source, target)
    assert not source.exists()
    assert [path.name for path in target.iterdir()] == ['inner']
    assert (target / 'inner' / 'file').read_text() == 'new'


@pytest.mark.parametrize(
    'content',
    [
        '',
        '[]',
        'null',
        '{}',
        '{"folder": 7}',
        '{"folder": ""}',
        '{"folder": "a\\u0000"}',
        '{"folder": "\\ud800"}',
    ],
)
def test_a_damaged_note_of_the_place_is_named(tmp_path: pathlib.Path, content: str) -> None:
    (tmp_path / folders.ELSEWHERE).write_text(content)
    with pytest.raises(ValueError, match=r'checkpoints_in\.json is damaged: '):
        folders.of_run(tmp_path)
