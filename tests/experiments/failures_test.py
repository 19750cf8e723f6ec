"""Failed pieces: what goes on, what is left out, what other commands and later ones do."""

from __future__ import annotations

import errno
import json
import os
import pathlib

import pytest

from experiments import command, execute
from experiments.bench import Bench
from experiments.failures import Failures
from experiments.statuses import BAD_INPUT, DIVERGED
from experiments.workspace import Workspace
from nope.checkpoints.lease import LostLeaseError
from nope.runtime import files, processes
from nope.sharding import MeshConfig
from nope.training.config import Compute
from nope.training.reporting import TrainingDiverged
from nope.training.train import Interrupted
from tests.experiments.execute_test import Piece

BASE, OTHER = Piece('base'), Piece('other')
SEARCH = Piece('search', (BASE,))
FIGURE = Piece('figure', (SEARCH, OTHER))
PIECES = (BASE, SEARCH, OTHER, FIGURE)


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(Workspace(tmp_path), Compute(mesh=MeshConfig(), later_mesh=MeshConfig()), 64)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pieces that were made or tried; `errors` of the fixture's maker are raised."""
    tried: list[str] = []

    def make(bench: Bench, spec: Piece) -> None:
        tried.append(spec.name)
        if spec.name in ERRORS:
            raise ERRORS[spec.name]
        files.write_json(bench.workspace.folder(spec) / spec.finished, {})

    monkeypatch.setattr(execute, '_make', make)
    monkeypatch.setattr(execute, 'LOOK_SECONDS', 0.01)
    ERRORS.clear()
    return tried


ERRORS: dict[str, Exception] = {}


def attempt(bench: Bench, before: Failures | None = None) -> str:
    failures = before or Failures(bench.workspace, PIECES)
    execute.execute(bench, PIECES, failures)
    return failures.describe(PIECES)


@pytest.mark.parametrize('error', [TrainingDiverged('loss nan'), KeyError('a'), MemoryError('b')])
def test_what_needs_a_failed_piece_is_left_out_and_all_else_is_made(
    bench: Bench, made: list[str], error: Exception
) -> None:
    ERRORS['base'] = error
    told = attempt(bench)
    assert made == ['base', 'other']
    failed, left_out, *others = told.split('\n')
    assert failed.startswith('1 of 4 pieces failed, and the same command tries it again: base: ')
    assert str(error.args[0]) in failed
    assert left_out.startswith('left out') and others == ['  search', '  figure']


def test_the_same_command_tries_failed_pieces_again(bench: Bench, made: list[str]) -> None:
    ERRORS['base'] = TrainingDiverged('loss nan')
    attempt(bench)
    note = bench.workspace.folder(BASE) / 'failed.json'
    assert json.loads(note.read_text())['message'] == 'loss nan'
    ERRORS.clear()
    assert attempt(bench) == ''
    assert made == ['base', 'other', 'base', 'search', 'figure']
    assert not note.exists()


def test_a_training_that_diverged_is_left_to_no_other_command_that_is_at_work(
    bench: Bench, made: list[str]
) -> None:
    """What may have been the machine's fault is tried by each."""
    ERRORS['base'] = TrainingDiverged('loss nan')
    ERRORS['other'] = OSError('unreadable')
    before = Failures(bench.workspace, PIECES)
    attempt(bench)
    assert made == ['base', 'other']
    del ERRORS['other']
    told = attempt(bench, before)
    assert made == ['base', 'other', 'other']
    assert '1 of 4 pieces failed' in told and 'base: loss nan (on ' in told


def test_what_another_command_made_after_all_did_not_fail(bench: Bench, made: list[str]) -> None:
    ERRORS['base'] = OSError('unreadable')
    failures = Failures(bench.workspace, PIECES)
    assert attempt(bench, failures)
    ERRORS.clear()
    attempt(bench)
    assert failures.describe(PIECES) == ''


@pytest.mark.parametrize(
    'error',
    [
        Interrupted('stopped'),
        LostLeaseError('taken over'),
        processes.OtherProcessError('elsewhere'),
        OSError(errno.ENOSPC, 'No space left on device'),
    ],
)
def test_what_ends_a_command_ends_it(bench: Bench, made: list[str], error: Exception) -> None:
    ERRORS['base'] = error
    with pytest.raises(type(error)):
        attempt(bench)
    assert made == ['base']


def test_a_full_disk_is_seen_behind_the_error_of_a_library(bench: Bench, made: list[str]) -> None:
    ERRORS['base'] = ValueError('not saved')
    ERRORS['base'].__cause__ = OSError(errno.ENOSPC, 'No space left on device')
    with pytest.raises(ValueError, match='not saved'):
        attempt(bench)
    ERRORS['base'] = RuntimeError(f'cannot write: {os.strerror(errno.EFBIG)}')
    with pytest.raises(RuntimeError, match='cannot write'):
        attempt(bench)


def test_several_failures_have_a_line_each(bench: Bench, made: list[str]) -> None:
    ERRORS['base'], ERRORS['other'] = TrainingDiverged('loss nan'), KeyError('a')
    first, *others = attempt(bench).split('\n')
    assert first == '2 of 4 pieces failed, and the same command tries them again:'
    assert others[:2] == ['  base: loss nan', "  other: KeyError: 'a'"]


def test_what_diverged_alone_has_a_status_of_its_own(bench: Bench, made: list[str]) -> None:
    """A launcher does not start it again: in any other failure it does."""
    ERRORS['base'] = TrainingDiverged('loss nan')
    failures = Failures(bench.workspace, PIECES)
    attempt(bench, failures)
    assert failures.status(PIECES) == DIVERGED
    assert failures.status([OTHER]) == 1  # which another command has made meanwhile
    waiting = Failures(bench.workspace, PIECES)
    bench.workspace.folder(OTHER).joinpath(OTHER.finished).unlink()
    ERRORS['other'] = KeyError('a')
    attempt(bench, failures := Failures(bench.workspace, PIECES))
    assert failures.status(PIECES) == 1
    failures.add(BASE, TrainingDiverged('loss inf'))  # which another command hears of
    waiting.look(PIECES)
    assert waiting.status(PIECES) == DIVERGED


def test_several_processes_go_on_only_after_what_all_of_them_met(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All see the same loss; a file that one cannot read leaves the others in a computation."""
    failures = Failures(bench.workspace, PIECES)
    met: list[object] = []
    monkeypatch.setattr(processes, 'count', lambda: 2)
    monkeypatch.setattr(processes, 'from_first', lambda make: make())
    monkeypatch.setattr(processes, 'exchange', lambda value, name: met.append(value))
    with pytest.raises(OSError, match='unreadable'):
        failures.add(BASE, OSError('unreadable'))
    assert met == [] and BASE not in failures
    failures.add(BASE, TrainingDiverged('loss nan'))
    assert met == ['base'] and BASE in failures


def test_without_a_place_for_failures_the_first_error_is_raised(
    bench: Bench, made: list[str]
) -> None:
    ERRORS['other'] = TrainingDiverged('loss nan')
    with pytest.raises(TrainingDiverged):
        execute.execute(bench, PIECES)
    assert made == ['base', 'search', 'other']


@pytest.mark.parametrize(
    ('error', 'status'),
    [
        (OSError(errno.ESTALE, 'a handle of NFS'), 1),
        (processes.MissingProcessError('process 1 had not come'), 1),
        (FileNotFoundError(errno.ENOENT, 'no such file'), BAD_INPUT),
        (OSError('told by another process'), BAD_INPUT),
        (ValueError('a field'), BAD_INPUT),
    ],
)
def test_what_passes_does_not_end_a_job_for_good(error: Exception, status: int) -> None:
    assert command.status_of(error) == status
    if isinstance(error, OSError):  # as the other processes hear of it
        with pytest.raises(OSError, match='process 0: ') as told:
            processes._taken({**processes._failure(error), 'process': 0})
        assert told.value.errno == error.errno and command.status_of(told.value) == status
