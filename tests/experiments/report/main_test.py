"""The command: what it prints, where it writes, and what it refuses."""

from __future__ import annotations

import pathlib

import pytest

from experiments.report.__main__ import main
from tests.experiments.report import work


@pytest.fixture(scope='module')
def root(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return work.make(tmp_path_factory.mktemp('work'))


def test_a_report_is_written_into_its_folder(
    root: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(root)]) == 0
    assert capsys.readouterr().out == f'{root / "report.html"}\n'
    assert (root / 'report.html').stat().st_size > 10_000


def test_it_goes_where_out_says(
    root: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / 'new' / 'page.html'
    assert main([str(root), str(root), f'--out={out}']) == 0
    assert capsys.readouterr().out == f'{out}\n'
    assert [path.name for path in out.parent.iterdir()] == ['page.html']


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    root: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / 'page.html'
    out.write_text('old')

    def full(descriptor: int) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('os.fsync', full)
    assert main([str(root), f'--out={out}']) == 2
    assert out.read_text() == 'old' and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize('kind', ['missing', 'empty', 'file'])
def test_what_is_no_work_folder_is_refused_in_one_line(
    kind: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / kind
    if kind == 'empty':
        folder.mkdir()
    if kind == 'file':
        folder.write_text('text')
    assert main([str(folder)]) == 2
    told = capsys.readouterr()
    assert told.out == '' and told.err.count('\n') == 1
    assert told.err.startswith(f'error: {folder} holds no figures, no records and no runs')
    assert not (folder / 'report.html').exists()


@pytest.mark.parametrize('arguments', [[], ['a', 'b', 'c'], ['a', '--to=x'], ['a', '--out=']])
def test_other_arguments_get_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert 'nope report WORKDIR' in capsys.readouterr().err
