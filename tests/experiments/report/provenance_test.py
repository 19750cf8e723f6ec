from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil

import pytest

from configs.first_paper import fig4
from experiments import figure_configs
from experiments.build import build
from experiments.report import missing, provenance, workfolder
from nope.runtime import files
from tests.experiments.figures import synthetic
from tests.experiments.report import work

FIG4 = 'configs/first_paper/fig4.py'


def settings_of(size: str, **changes: object) -> dict:
    config = fig4.get_config(size)
    config.update_from_flattened_dict(changes)
    return dict(build(config, [*changes]).settings)


@pytest.mark.parametrize('size', ['quick', 'small'])
def test_a_figure_as_its_config_has_it_differs_in_nothing(size: str) -> None:
    found = figure_configs.differences(settings_of(size), f'{FIG4}:{size}')
    assert found == figure_configs.Differences(f'{FIG4}:{size}', {}, ())


def test_what_was_set_is_a_difference_and_a_flag() -> None:
    changes = {'train.steps': 600, 'name': 'fig4_long', 'seeds': (0, 1)}
    found = figure_configs.differences(settings_of('quick', **changes), f'{FIG4}:quick')
    assert found.config == 'configs/first_paper/fig4.py:quick'
    assert found.changed['train.steps'] == ('2400', '600')
    assert set(found.changed) >= set(changes)
    assert found.flags is not None
    assert {"'--config.seeds=(0, 1)'", '--config.train.steps=600'} <= set(found.flags)


def test_a_field_given_to_an_entry_is_a_flag_of_the_command_that_runs_it_again() -> None:
    changes = {'evals.headscale.multiplier': 1.25, 'search.steps': 100}
    config = fig4.get_config()
    config.evals.headscale.multiplier = 1.25
    config.search.steps = 100
    settings = dict(build(config, [*changes]).settings)
    found = figure_configs.differences(settings, FIG4)
    assert {'--config.evals.headscale.multiplier=1.25', '--config.search.steps=100'} <= set(
        found.flags
    )


def test_a_figure_of_no_known_command_has_no_config() -> None:
    for asked in ('', 'configs/shared/base.py'):
        found = figure_configs.differences({'a': 1}, asked)
        assert found == figure_configs.Differences('', {}, None)


def test_what_flags_cannot_say_gives_no_command() -> None:
    found = figure_configs.differences(
        settings_of('quick') | {'model.position': {'kind': 'rope'}}, FIG4
    )
    assert found.flags is None and 'model.position' in found.changed


def test_the_command_that_drew_a_figure_tells_its_config(tmp_path: pathlib.Path) -> None:
    """The newest of the work folder's log."""
    folder = work.link(tmp_path, 'fig4_of_mine', {})
    settings = settings_of('small', name='fig4_of_mine')
    files.write_json(folder / 'spec.json', {'settings': settings})
    lines = [
        {'figure': 'fig4_of_mine', 'arguments': ['--config=configs/first_paper/fig4.py:quick']},
        {
            'figure': 'fig4_of_mine',
            'arguments': ['--workdir=W', '--config=/configs/first_paper/fig4.py:small'],
        },
        {'figure': 'fig5', 'arguments': ['--config=configs/first_paper/fig5.py:quick']},
        {'figure': 'fig4_of_mine', 'arguments': None},
    ]
    (tmp_path / 'commands.jsonl').write_text(''.join(json.dumps(x) + '\n' for x in lines))
    (origin,) = provenance.figures(workfolder.read(tmp_path))
    assert origin.differences.config == 'configs/first_paper/fig4.py:small'
    assert origin.differences.flags == ('--config.name=fig4_of_mine',)
    assert origin.rerun.startswith('nope run fig4:small --workdir=')


@pytest.mark.parametrize(
    ('asked', 'config'),
    [
        (
            'configs/second_paper/b_attention.py:quick,text',
            'configs/second_paper/b_attention.py:quick,text',
        ),
        ('configs/checkpoints/extend.py', 'configs/checkpoints/extend.py'),
        ('mine/fig4.py:quick', ''),
        ('configs/no_such.py:quick', ''),
    ],
)
def test_a_config_that_was_asked_for_is_read_as_it_was(asked: str, config: str) -> None:
    assert figure_configs.differences({'name': 'no_such'}, asked).config == config


def test_commands_are_quoted(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "it's; rm"
    folder = work.link(root, 'fig4', {})
    files.write_json(folder / 'spec.json', {'settings': settings_of('quick')})
    line = {'figure': 'fig4', 'arguments': [f'--config={FIG4}:quick']}
    (root / 'commands.jsonl').write_text(json.dumps(line) + '\n')
    (origin,) = provenance.figures(workfolder.read(root))
    assert shlex.split(origin.redraw)[-1] == str(folder)
    assert shlex.split(origin.rerun)[-1] == f'--workdir={root}'


def test_data_and_versions_are_told_once_each(tmp_path: pathlib.Path) -> None:
    for number in range(3):
        work.run(tmp_path, f'run-{number}', steps=10)
    found = workfolder.read(tmp_path)
    (source,) = provenance.data(found)
    assert (source.kind, source.runs) == ('stdlib', 3)
    assert dict(source.facts) == {'digest': '7bf8889e', 'python': '3.11.7'}
    (made,) = provenance.made_with(found)
    assert (made.field, made.value, made.places) == ('python', '3.11.7', 3)


@pytest.fixture(scope='module')
def made(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    root = tmp_path_factory.mktemp('work')
    work.figure(root)
    return root


@pytest.fixture
def root(made: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(made, tmp_path / 'work'))


def kinds(root: pathlib.Path) -> list[tuple[str, str]]:
    return [(p.kind, p.what) for p in missing.of_figures(workfolder.read(root))]


def test_a_figure_drawn_after_its_records_is_in_order(root: pathlib.Path) -> None:
    assert kinds(root) == []


def test_records_newer_than_the_figure_make_it_stale(root: pathlib.Path) -> None:
    path = root / 'records/positions-256-nope/records.json'
    later = (root / 'figures/fig5/summary.json').stat().st_mtime + 10
    os.utime(path, (later, later))
    what = "its records of 'nope' (records/positions-256-nope) are newer than the figure"
    assert kinds(root) == [('stale', what)]


def test_records_that_are_gone_are_missing(root: pathlib.Path) -> None:
    shutil.rmtree(root / 'records/positions-256-nope')
    what = "its records of 'nope' (records/positions-256-nope) are gone"
    assert kinds(root) == [('missing', what)]


def test_records_that_lie_elsewhere_are_told_by_their_path(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    elsewhere = work.save(tmp_path / 'other', 'positions-64', synthetic.positions_records(64))
    work.link(root, 'far', {'nope': os.path.relpath(elsewhere, root / 'records')})
    what = "its records of 'nope' (../other/records/positions-64) are not readable here"
    assert ('damaged', what) in kinds(root)


def test_the_log_of_commands_names_commits_versions_and_devices(tmp_path: pathlib.Path) -> None:
    work.run(tmp_path, 'run', steps=10)
    lines = [
        {'commit': 'abc', 'versions': {'jax': '0.10'}, 'device': 'cpu'},
        {'commit': 'abc-dirty', 'versions': {'jax': '0.10'}, 'device': 'cpu'},
    ]
    text = ''.join(json.dumps(line) + '\n' for line in lines)
    (tmp_path / 'commands.jsonl').write_text(text)
    told = provenance.made_with(workfolder.read(tmp_path))
    found = {(m.field, m.value): m.places for m in told}
    assert found['commit', 'abc'] == found['commit', 'abc-dirty'] == 1
    assert found['versions jax', '0.10'] == found['device', 'cpu'] == 2
