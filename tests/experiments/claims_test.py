"""The command that puts the claims of a work folder on one page."""

from __future__ import annotations

import csv
import json
import pathlib
import re

import pytest

from experiments import claims, config_files, figure_configs, figures
from experiments.board.page import MARKS
from experiments.board.summaries import of_work
from experiments.build import build
from experiments.figures.claims.headline import Number
from tests.experiments.figures.synthetic import INPUTS


@pytest.fixture(scope='module')
def drawn(tmp_path_factory) -> pathlib.Path:
    """A work folder with the figures fig1 and fig5 at quick and fig5 at small."""
    work = tmp_path_factory.mktemp('work')
    for kind, name in (
        ('entropy_loss', 'fig1'),
        ('multiplier_entropy', 'fig5'),
        ('multiplier_entropy', 'fig5_small'),
    ):
        given = INPUTS[kind]
        output = figures.draw(kind, given)
        folder = work / 'figures' / name
        figures.write(output, folder)
        (folder / f'{given.name}.png').unlink()
        (folder / 'spec.json').write_text(json.dumps({'settings': {'seeds': [0]}}))
    return work


@pytest.fixture
def real_pictures() -> None:
    """For a test that looks at pictures, which take most of the command's time."""


@pytest.fixture(autouse=True)
def _quick_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if 'real_pictures' not in request.fixturenames:
        monkeypatch.setattr(claims, 'rendered', lambda figure, kind, dpi: kind.encode())
        monkeypatch.setattr(claims.png, 'smaller', lambda data, width: data)


@pytest.fixture
def work(drawn: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy to change."""
    for path in drawn.glob('figures/*/*.json'):
        copy = tmp_path / 'work' / path.relative_to(drawn)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return tmp_path / 'work'


@pytest.mark.usefixtures('real_pictures')
def test_the_board_is_written_and_again_with_the_same_bytes(work, capsys):
    assert claims.main([f'--workdir={work}']) == 0
    folder = work / 'claims'
    said = capsys.readouterr().out.splitlines()
    assert said == [str(folder / 'trend.png'), str(folder / 'claims.md')]
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(files) == {'claims.md', *(f'trend.{kind}' for kind in ('csv', 'png', 'pdf'))}
    assert claims.main([f'--workdir={work}']) == 0
    assert files == {path.name: path.read_bytes() for path in folder.iterdir()}
    lines = list(csv.DictReader(files['trend.csv'].decode().splitlines()))
    assert {row['figure'] for row in lines} == {'fig5'}
    assert [row['size'] for row in lines] == ['quick', 'small'] * (len(lines) // 2)
    (folder / 'trend.csv').unlink()
    assert claims.main([f'--workdir={work}', '--size=small']) == 0
    assert not (folder / 'trend.csv').exists()
    assert 'Signs, at `small`: ' in (folder / 'claims.md').read_text()


def test_the_page_says_what_the_summaries_say(work):
    assert claims.main([f'--workdir={work}']) == 0
    (summary,) = json.loads((work / 'figures/fig5_small/summary.json').read_text())['claims']
    page = (work / 'claims/claims.md').read_text()
    assert 'Signs, at `quick` and `small`: ' in page
    (line,) = (text for text in page.splitlines() if '[fig5](../figures/fig5_small/' in text)
    sign = f'{MARKS[summary["verdict"]]}\N{SUPERSCRIPT ONE}'
    said = [Number.from_stated(stated).said() for stated in summary['numbers'][:2]]
    assert line.startswith(f'| {sign} {sign} |') and f'{"; ".join(said)} | [fig5](' in line


def test_a_figure_of_another_name_is_left_out_and_said(work, capsys):
    (work / 'figures/fig5').rename(work / 'figures/mine')
    assert claims.main([f'--workdir={work}']) == 0
    assert f'left out: {work}/figures/mine, whose name is that of no config' in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('{"claims": ', 'fig1/summary.json'),
        ('[]', 'fig1/summary.json is damaged'),
        ('{"figure": "fig1"}', "fig1/summary.json is .*: it lacks 'runs'.*draw"),
        ('{"runs": {}, "claims": [{"id": "parity"}]}', "fig1/summary.json .* it lacks 'numbers'"),
        (
            '{"runs": {}, "claims": [{"id": "p", "verdict": "v", "numbers": [], "statement": ""}]}',
            "fig1/summary.json is .*: 'p' with 'v' is no such claim",
        ),
        ('{"claims": [], "runs": 3}', 'fig1/summary.json is damaged'),
    ],
)
def test_a_summary_that_is_damaged_or_of_another_format_is_named(work, capsys, text, said):
    (work / 'figures/fig1/summary.json').write_text(text)
    assert claims.main([f'--workdir={work}']) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('error: ')
    assert re.search(said, line)


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (['--workdir=NOWHERE'], 'no folder figures'),
        (['--workdir=WORK', '--size=medium'], 'has no figure of size medium'),
        (['--workdir=WORK', '--results=WORK/figures', '--size=medium'], 'no figure of size'),
        (['--results=NOWHERE'], '--results=NOWHERE: there is no such folder'),
        (['--workdir=WORK', '--results=WORK/TYPO'], '/TYPO: there is no such folder'),
        (['--results=WORK'], 'WORK has no results'),
    ],
)
def test_what_is_not_there_is_named(work, capsys, arguments, said):
    assert claims.main([text.replace('WORK', str(work)) for text in arguments]) == 2
    error = capsys.readouterr().err
    assert said.replace('WORK has', f'{work} has') in error and 'Traceback' not in error
    assert {path.name for path in work.iterdir()} == {'figures'}


@pytest.mark.parametrize('arguments', [[], ['--size=quick'], ['--workdir=W', 'fig1']])
def test_arguments_that_do_not_fit_are_refused(arguments):
    with pytest.raises(SystemExit) as ended:
        claims.main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize('name', config_files.names())
def test_a_figure_of_a_config_is_that_configs_own(name, tmp_path):
    try:
        settings = build(config_files.module(name).get_config('quick')).settings
    except (FileNotFoundError, ValueError):
        pytest.skip('it wants files or a checkpoint')
    note = {'settings': dict(settings)}
    (tmp_path / 'spec.json').write_text(json.dumps(note, default=list))
    assert not figure_configs.changes(tmp_path, name, 'quick')


@pytest.mark.parametrize(
    ('name', 'place'),
    [
        ('fig1', ('fig1', 'quick')),
        ('fig1_small', ('fig1', 'small')),
        ('split_seeds_paper', ('split_seeds', 'paper')),
        ('fig1_released', ('fig1', 'released')),
        ('fig4_long', None),
        ('nothing', None),
    ],
)
def test_the_name_of_a_figure_tells_config_and_size(name, place):
    assert figure_configs.config_of(name) == place


def test_a_figure_of_a_changed_config_becomes_no_result(work, tmp_path, capsys):
    results = tmp_path / 'configs/results'
    results.mkdir(parents=True)
    spec = work / 'figures/fig5_small/spec.json'
    spec.write_text('{"settings": {"train.length": 128, "train.steps": 12}}')
    assert claims.main([f'--workdir={work}', f'--results={results}']) == 2
    said = capsys.readouterr().err
    assert (
        'figures/fig5_small was drawn with train.steps=12, configs/first_paper/fig5.py:small has '
        in said
    )
    assert not [*results.iterdir()]
    spec.unlink()
    assert claims.main([f'--workdir={work}', f'--results={results}']) == 2
    assert 'fig5_small was not drawn to its end' in capsys.readouterr().err
    spec.write_text('{"settings": {"train.length": 128}}')
    assert claims.main([f'--workdir={work}', f'--results={results}']) == 0
    assert sorted(path.name for path in results.glob('*/*')) == [
        'fig1.json',
        'fig5.json',
        'fig5.json',
    ]
    capsys.readouterr()
    assert {path.name for path in results.glob('*.*')} == {'trend.csv', 'trend.pdf', 'trend.png'}
    assert claims.main([f'--workdir={work}', f'--results={results}']) == 0
    assert str(results) not in capsys.readouterr().out  # nothing changed


def test_a_figure_of_a_changed_config_says_so_on_the_board(work):
    assert claims.main([f'--workdir={work}']) == 0
    assert 'rawn with' not in (work / 'claims/claims.md').read_text()
    settings = {'train.steps': 4, 'train.length': 64, 'seeds': [0, 1], 'name': 'fig1'}
    (work / 'figures/fig1/spec.json').write_text(json.dumps({'settings': settings}))
    assert claims.main([f'--workdir={work}']) == 0
    text = (work / 'claims/claims.md').read_text()
    said = "Drawn with settings that are not their configs': `fig1` at `quick` with train.steps=4."
    assert f'\n\n{said}\n' in text


def test_files_of_the_user_are_no_changed_settings_and_a_checkpoint_is_no_result(
    work, tmp_path, capsys
):
    (work / 'figures/fig1').rename(work / 'figures/fig1_paper')
    spec = {'settings': {'data.source': 'text:/books', 'train.batch_size': 3}}
    (work / 'figures/fig1_paper/spec.json').write_text(json.dumps(spec))
    (work / 'figures/fig5').rename(work / 'figures/extend')
    (work / 'figures/extend/spec.json').write_text('{"settings": {"init": "hf:/mine"}}')
    assert claims.main([f'--workdir={work}']) == 0
    said = (work / 'claims/claims.md').read_text().rpartition("configs': ")[2]
    assert said == '`fig1` at `paper` with train.batch_size=3.\n'
    assert claims.main([f'--workdir={work}', f'--results={tmp_path}']) == 2
    assert "extend is about a checkpoint of the user's" in capsys.readouterr().err


def test_results_that_no_command_of_the_log_drew_are_said(work, tmp_path, capsys):
    results = tmp_path / 'results'
    results.mkdir()
    command = {'figure': 'fig1', 'commit': 'c0', 'versions': {}, 'device': 'cpu', 'devices': 1}
    (work / 'commands.jsonl').write_text(json.dumps(command) + '\n')
    for _ in range(2):
        assert claims.main([f'--workdir={work}', f'--results={results}']) == 0
        lines = capsys.readouterr().err.splitlines()
        log = work / 'commands.jsonl'
        assert [line.partition(':')[2] for line in lines] == [
            f' {log} names no command that drew {name}: drawn_by of its result is empty'
            for name in ('fig5', 'fig5_small')
        ]


def test_seeds_of_a_folder_are_in_the_order_of_the_numbers_by_seed(work):
    (work / 'figures/fig1/spec.json').write_text('{"settings": {"seeds": [10, 2]}}')
    found = of_work(work / 'figures/fig1', 'fig1', 'quick')
    assert found.seeds == (2, 10) and set(found.runs) == {'nope', 'headscale'}
