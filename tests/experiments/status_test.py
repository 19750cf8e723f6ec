"""States of pieces, as someone who watches a sweep sees them."""

from __future__ import annotations

import json
import os
import pathlib
import time

import pytest

from experiments import pieces, status
from experiments.pieces import Piece
from experiments.plan import listed
from experiments.workspace import Workspace
from nope.checkpoints import holder
from nope.runtime import files
from tests.experiments import execute_test


def piece(name: str, what: str = 'train', needs: tuple[str, ...] = ()) -> Piece:
    room = {'train': 'runs', 'measure': 'records'}[what]
    folder = f'{room}/{name}'
    return Piece(
        what=what,
        wanted=what == 'measure',
        used_by=('copy/seed0', 'copy/seed1'),
        folder=folder,
        finished='done.json',
        lock=f'{folder}/.lock',
        failed=f'{folder}/failed.json',
        needs=tuple(f'runs/{need}' for need in needs),
        steps=100 if what == 'train' else 0,
        tokens=64.0 if what == 'train' else 0.0,
    )


SWEEP = [
    *(piece(name) for name in 'abcde'),
    *(piece(f'of_{name}', 'measure', (name,)) for name in 'abcde'),
]


@pytest.fixture
def work(tmp_path: pathlib.Path) -> pathlib.Path:
    """a and its evaluation are done, b diverged, c is at step 40 when the test holds its lock, d
    was stopped at step 40, e has not begun."""
    pieces.write(tmp_path, 'b_mrr', SWEEP)
    for done in ('runs/a', 'records/of_a'):
        files.write_json(tmp_path / done / 'done.json', {})
    note = {'error': 'TrainingDiverged', 'message': 'loss nan', 'host': 'h', 'at': '2026-01-01'}
    files.write_json(tmp_path / 'runs/b/failed.json', note)
    rows = [{'step': 20}, {'step': 40, 'tokens_per_second': 128.0}]
    for begun in ('runs/c', 'runs/d'):
        (tmp_path / begun).mkdir()
        text = ''.join(json.dumps(row) + '\n' for row in rows)
        (tmp_path / begun / 'metrics.jsonl').write_text(text)
    return tmp_path


def test_every_piece_is_in_one_state(work: pathlib.Path) -> None:
    with files.exclusive(work / 'runs/c/.lock'):
        found = {row.piece.name: (row.state, row.more) for row in status.rows(work, 'b_mrr')}
    assert found == {
        'a': ('done', ''),
        'of_a': ('done', ''),
        'b': ('failed', 'TrainingDiverged on h, 2026-01-01: loss nan'),
        'of_b': ('missing', 'waits for b'),
        'c': ('running', 'step 40 of 100, 2 steps/s, 0:00:30 left'),
        'of_c': ('missing', 'waits for c'),
        'd': ('missing', 'step 40 of 100'),
        'of_d': ('missing', 'waits for d'),
        'e': ('missing', ''),
        'of_e': ('missing', 'waits for e'),
    }


def test_what_only_finished_pieces_needed_is_left_out(work: pathlib.Path) -> None:
    (work / 'runs/a/done.json').unlink()
    names = [row.piece.name for row in status.rows(work, 'b_mrr')]
    assert 'a' not in names and 'of_a' in names


def test_a_failed_piece_that_is_tried_again_runs(work: pathlib.Path) -> None:
    with files.exclusive(work / 'runs/b/.lock'):
        (row,) = (row for row in status.rows(work, 'b_mrr') if row.piece.name == 'b')
    assert (row.state, row.more) == (status.RUNNING, 'before its first step')


def test_the_samples_of_an_evaluation_are_counted(work: pathlib.Path) -> None:
    files.write_json(work / 'runs/c/done.json', {})
    (work / 'records/of_c').mkdir()
    (work / 'records/of_c/samples.jsonl').write_text('{"key": "1"}\n{"key": "2"}\n{"ke')
    with files.exclusive(work / 'records/of_c/.lock'):
        (row,) = (row for row in status.rows(work, 'b_mrr') if row.piece.name == 'of_c')
    assert (row.state, row.more) == (status.RUNNING, '2 samples')


def test_a_look_disturbs_nobody(work: pathlib.Path) -> None:
    """Whoever holds a folder keeps it, and nothing is written."""
    (work / 'runs/e').mkdir()
    before = sorted(work.rglob('*'))
    status.rows(work, 'b_mrr')
    assert sorted(work.rglob('*')) == before
    lock = work / 'runs/c/.lock'
    with files.exclusive(lock, wait=False):
        assert files.is_locked(lock)
        status.rows(work, 'b_mrr')
        with pytest.raises(files.BusyError), files.exclusive(lock, wait=False):
            pass
    assert not files.is_locked(lock)


@pytest.mark.parametrize('inside', [True, False])
def test_a_lease_holds_by_its_heartbeats(tmp_path: pathlib.Path, inside: bool) -> None:
    folder = tmp_path / 'folder'
    lock = folder / '.lock' if inside else tmp_path / '.folder.lock'
    owner = holder.owner_of(folder, lock)
    assert not holder.is_held(folder, lock)
    files.write_json(owner, {'beats': 1})
    assert holder.is_held(folder, lock)
    silent = time.time() - holder.SILENCE - 1
    os.utime(owner, (silent, silent))
    assert not holder.is_held(folder, lock)


def test_a_plan_lists_what_it_will_make(tmp_path: pathlib.Path) -> None:
    base = execute_test.Piece('base')
    top = execute_test.Piece('top', (base,))
    base_piece, top_piece = listed(Workspace(tmp_path), {'one/seed0': top, 'two/seed0': base})
    assert base_piece.used_by == ('one/seed0', 'two/seed0') and top_piece.used_by == ('one/seed0',)
    assert top_piece.needs == (base_piece.folder,) == ('pieces/base',)
    assert base_piece.lock == 'pieces/base/.lock'


def test_the_command_prints_a_table(work: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status.main([str(work), '--only=failed,done']) == 1
    name, *lines, total = capsys.readouterr().out.splitlines()
    assert name == 'b_mrr' and total == '10 pieces: 2 done, 0 running, 1 failed, 7 missing'
    assert [line.split()[0] for line in lines] == ['done', 'failed', 'done']
    assert 'copy/seed0 +1' in lines[0]


def test_all_done_is_status_0(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    pieces.write(tmp_path, 'fig1', [piece('a')])
    files.write_json(tmp_path / 'runs/a/done.json', {})
    assert status.main([str(tmp_path)]) == 0
    assert '1 pieces: 1 done, 0 running, 0 failed, 0 missing' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['{work}', 'fig9'], 'fig9.json is missing; the figures that commands worked on'),
        (['{work}', '--only=late'], '--only=late: accepted are some of done, running, failed'),
        (['{work}/nothing'], 'lists no figure'),
        (['{work}', '--all'], 'nope status'),
        ([], 'nope status'),
    ],
)
def test_bad_input_is_named(
    work: pathlib.Path, capsys: pytest.CaptureFixture, arguments: list[str], message: str
) -> None:
    assert status.main([a.format(work=work) for a in arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_damaged_list_is_named(work: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    (work / 'plans/b_mrr.json').write_text('{"pieces": [{"what": "train"}]}')
    assert status.main([str(work)]) == 2
    assert 'b_mrr.json is damaged' in capsys.readouterr().err
