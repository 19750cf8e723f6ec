from __future__ import annotations

import concurrent.futures
import json
import pathlib

import pytest

from experiments import draw, history
from experiments.board import summaries
from nope import records
from nope.runtime import files
from tests.experiments.figures.synthetic import INPUTS

OPTIONS = INPUTS['multiplier_entropy'].options


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A figure's folder, with the records that it is drawn from."""
    given = INPUTS['multiplier_entropy']
    sources = {name: tmp_path / 'records' / name for name in given.records}
    for name, source in sources.items():
        records.save(given.records[name], source)
    figure = tmp_path / 'figures' / 'fig5'
    draw.write_inputs(figure, 'fig5', {'kind': 'multiplier_entropy', **given.options}, sources)
    return figure


def test_the_log_of_a_work_folder_names_the_code_that_drew_last(folder: pathlib.Path) -> None:
    work = folder.parents[1]
    assert draw.main([str(folder)]) == 0
    assert (folder / 'fig5.png').exists()
    assert not (work / history.FILE).exists()  # no work folder's
    history.note(work, 'fig5', ['--config=configs/first_paper/fig5.py:quick'])
    assert draw.main([str(folder)]) == 0
    run, drawn = map(json.loads, (work / history.FILE).read_text().splitlines())
    assert drawn['figure'] == 'fig5' and drawn['drawn_alone']
    assert drawn['commit'] == run['commit'] and drawn['versions'] == run['versions']
    assert 'device' in run and 'device' not in drawn
    said = summaries.of_work(folder, 'fig5', 'quick').drawn_by
    assert [found['device'] for found in said] == [run['device'], None]


def test_a_drawing_waits_for_the_one_before_it(folder: pathlib.Path) -> None:
    """And removes what a killed one left half written."""
    with concurrent.futures.ThreadPoolExecutor() as threads:
        with draw.alone(folder):
            half = files.unfinished(folder / 'fig5.png')
            half.write_bytes(b'half')
            drawing = threads.submit(draw.main, [str(folder)])
            with pytest.raises(concurrent.futures.TimeoutError):
                drawing.result(timeout=0.5)
            assert half.exists()
        assert drawing.result(timeout=60) == 0
    assert not half.exists()


def test_a_figure_of_an_old_work_folder_is_refused_with_what_to_do(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = folder.parents[1] / 'records' / 'headscale'
    described = json.loads((old / 'records.json').read_text())
    del described['format']
    (old / 'records.json').write_text(json.dumps(described))
    assert draw.main([str(folder)]) == 2
    assert not (folder / 'fig5.png').exists()
    message = capsys.readouterr().err
    assert message.startswith(f'error: {old / "records.json"} is of format 1; accepted is 2.')
    assert '`nope run` with the config of its figure measures it again' in message
    assert message.endswith(f'then remove {old}\n')


@pytest.mark.parametrize(('changes', 'message'), [
    ({'name': '../../../esc'}, "name in {path} is '../../../esc'; accepted: up to 200 letters"),
    ({'kind': 'pie'}, "kind in {path} is 'pie'; accepted: ablation_table, "),
    ({'records': []}, 'records in {path} is []; it takes named values'),
    ({'kind': []}, 'kind in {path} is []; accepted: ablation_table, '),
    ({'records': {'a': None}}, 'records.a in {path} is None; accepted is the path of a folder'),
    ({'records': {'a': 'b\0'}}, "records.a in {path} is 'b\\x00'; accepted is the path of a"),
    ({'options': {**OPTIONS, 'record': [1]}}, 'the options in {path}, or the records that it'),
    ({'more': 1}, '{path} holds other fields than name, kind, options and records'),
])  # fmt: skip
def test_damaged_inputs_are_refused(
    folder: pathlib.Path, changes: dict, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / 'inputs.json'
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    assert draw.main([str(folder)]) == 2
    assert capsys.readouterr().err.startswith(f'error: {message.format(path=path)}')
    assert {x.name for x in folder.iterdir()} - {'.lock'} == {'inputs.json'}
    assert not list(folder.parents[2].rglob('esc*'))


def test_a_file_is_no_folder_of_a_figure(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert draw.main([str(folder / 'inputs.json')]) == 2
    assert 'inputs.json holds no inputs.json; `nope run` makes one' in capsys.readouterr().err


@pytest.mark.parametrize('content', ['', 'null', '[' * 100_000])
def test_inputs_that_are_no_object_are_refused(
    folder: pathlib.Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / 'inputs.json').write_text(content)
    assert draw.main([str(folder)]) == 2
    assert capsys.readouterr().err.startswith(f'error: {folder / "inputs.json"} is damaged: ')
