"""What failed, what of the plans is not there, and which figures are not drawn."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil

import pytest

from experiments import pieces
from experiments.pieces import Piece
from experiments.report import missing, page, workfolder
from experiments.report.problems import Problem
from nope.runtime import files
from tests.experiments.report import work
from tests.experiments.report.work import Page

NOTE = {'error': 'TrainingDiverged', 'message': 'loss <nan>', 'host': 'h', 'at': '2026-01-01'}


def piece(name: str, what: str = 'train', needs: tuple[str, ...] = ()) -> Piece:
    folder = f'{"runs" if what == "train" else "records"}/{name}'
    return Piece(
        what=what,
        wanted=what == 'measure',
        used_by=(f'{name}/seed0', f'{name}/seed1'),
        folder=folder,
        finished='done.json' if what == 'train' else 'records.json',
        lock=f'{folder}/.lock',
        failed=f'{folder}/failed.json',
        needs=tuple(f'runs/{need}' for need in needs),
    )


# The run `old` is not there, and what needed it is.
PLAN = [
    *(piece(name) for name in ('old', 'a', 'b', work.UNFINISHED)),
    piece('passkey-4096-5', 'measure', ('old',)),
    *(piece(f'of_{name}', 'measure', (name,)) for name in 'ab'),
    piece('of_u', 'measure', (work.UNFINISHED,)),
]


@pytest.fixture(scope='module')
def made(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A work folder in which `a` failed, `b` was not begun, and a training is unfinished."""
    root = work.make(tmp_path_factory.mktemp('work'))
    pieces.write(root, 'fig1', PLAN)
    files.write_json(root / 'runs/a/failed.json', NOTE)
    return root


@pytest.fixture
def root(made: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(made, tmp_path / 'work'))


def found(root: pathlib.Path) -> list[Problem]:
    return missing.of_plans(workfolder.read(root))


def test_failures_say_why_and_where_and_what_is_not_there_for_what(root: pathlib.Path) -> None:
    why = 'TrainingDiverged on h, 2026-01-01: loss <nan> (fig1: a/seed0, fig1: a/seed1)'
    assert found(root) == [
        Problem(
            'missing',
            'figures/fig1',
            'not drawn: 1 of its pieces failed, 5 are unfinished or not there',
        ),
        Problem('failed', 'runs/a/failed.json', why),
        *(
            Problem(
                'missing',
                f'records/{name}',
                f'not there: it needs runs/{need} (fig1: {name}/seed0, fig1: {name}/seed1)',
            )
            for name, need in (('of_a', 'a'), ('of_b', 'b'), ('of_u', work.UNFINISHED))
        ),
        Problem('missing', 'runs/b', 'not there (fig1: b/seed0, fig1: b/seed1)'),
    ]


def test_the_page_shows_them_in_its_last_section(root: pathlib.Path) -> None:
    data = page.render([root], root / 'report.html')
    told = Page(data).text['problems']
    assert 'TrainingDiverged on h, 2026-01-01: loss <nan>' in told
    assert 'figures/fig1' in told and 'not drawn: 1 of its pieces failed' in told
    assert data == page.render([root], root / 'report.html')


def test_a_figure_whose_pieces_are_all_there_is_drawn_or_said(root: pathlib.Path) -> None:
    pieces.write(root, 'fig1', PLAN[4:5])
    (row,) = found(root)
    assert row.what == 'not drawn, though all its pieces are done'
    pieces.write(root, 'fig5', PLAN[4:5])
    (root / 'plans/fig1.json').unlink()
    assert found(root) == []


def test_a_piece_of_several_figures_has_one_row(root: pathlib.Path) -> None:
    pieces.write(root, 'fig2', PLAN)
    rows = [row for row in found(root) if row.kind == 'failed']
    assert [row.what.partition(' (')[2] for row in rows] == [
        'fig1: a/seed0, fig1: a/seed1, fig2: a/seed0 and 1 more)'
    ]


def test_rows_are_limited(root: pathlib.Path) -> None:
    pieces.write(root, 'fig1', [piece(f'of_{n}', 'measure') for n in range(20_000)])
    rows = found(root)
    assert len(rows) == 2 + missing.MOST
    what = f'{20_000 - missing.MOST} more pieces; `nope status` names all'
    assert rows[-1] == Problem('left out', 'plans', what)
    assert len(page.render([root], root / 'report.html')) < 3_000_000


@pytest.mark.parametrize('content', [b'\xff{', b'[]', b'{}', b'{"pieces": [1]}', b'{"pieces": 3}'])
def test_a_damaged_plan_is_named(root: pathlib.Path, content: bytes) -> None:
    (root / 'plans/fig1.json').write_bytes(content)
    assert [(row.kind, row.file) for row in found(root)] == [('damaged', 'plans/fig1.json')]


@pytest.mark.parametrize('field', [f.name for f in dataclasses.fields(Piece)])
@pytest.mark.parametrize('value', [None, 3, [[]], 'x\0', {'a': 1}])
def test_no_value_of_a_plan_ends_the_command(root: pathlib.Path, field: str, value: object) -> None:
    entries = [{**dataclasses.asdict(p), field: value} for p in PLAN]
    files.write_json(root / 'plans/fig1.json', {'pieces': entries})
    for row in sorted(found(root)):
        assert all(isinstance(text, str) for text in row)


@pytest.mark.parametrize('content', [b'\xff{', b'[]'])
def test_a_damaged_note_of_a_failure_is_named(root: pathlib.Path, content: bytes) -> None:
    (root / 'runs/a/failed.json').write_bytes(content)
    assert ('damaged', 'runs/a/failed.json') in {(row.kind, row.file) for row in found(root)}
