"""The command `nope`: its list of commands, its errors, and what it hands to them."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
import tomllib

import pytest

from experiments import cli, run
from experiments.cli import extend, flags
from experiments.config_files import ROOT

NOPE = "import sys; sys.argv[0] = 'nope'; from experiments.cli import main; sys.exit(main())"


def nope(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, '-c', NOPE, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_the_installed_command_is_this_one() -> None:
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
    assert project['scripts'] == {'nope': 'experiments.cli:main'}


def test_help_names_every_command() -> None:
    lines = cli.usage().splitlines()
    assert [line.split()[0] for line in lines if line.startswith('  ')] == list(cli.COMMANDS)


@pytest.mark.parametrize('name', cli.COMMANDS)
def test_every_command_is_a_module(name: str) -> None:
    assert importlib.util.find_spec(cli.COMMANDS[name][0]) is not None


def test_an_unknown_command_is_refused_by_name() -> None:
    done = nope('trian')
    assert done.returncode == cli.BAD_INPUT
    assert done.stderr.startswith('error: nope trian; accepted: run, draw, ')


def test_a_command_keeps_its_exit_status() -> None:
    assert nope('draw', '/no/such/folder').returncode == 2


@pytest.mark.parametrize(
    ('typed', 'read'),
    [
        (['fig1:quick', '--x'], [f'--config={ROOT}/configs/first_paper/fig1.py:quick', '--x']),
        (['--config=b_mrr'], [f'--config={ROOT}/configs/second_paper/b_mrr.py']),
        (['mine/fig1.py:quick'], ['--config=mine/fig1.py:quick']),
        (['--workdir=fig1'], ['--workdir=fig1']),
        (['--plan', 'b_mrr'], ['--plan', f'--config={ROOT}/configs/second_paper/b_mrr.py']),
        (
            ['--workdir', 'fig1', '--config', 'b_mrr', 'x'],
            ['--workdir', 'fig1', f'--config={ROOT}/configs/second_paper/b_mrr.py', 'x'],
        ),
        (['--config=mine.py', 'fig1'], ['--config=mine.py', 'fig1']),
        ([], []),
    ],
)
def test_a_config_is_named_as_its_figure_or_as_its_file(typed: list[str], read: list[str]) -> None:
    assert run.spelled(typed) == read


def test_extend_is_the_short_form_of_its_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extend.runpy, 'run_module', lambda *_, **__: None)
    monkeypatch.setattr(sys, 'argv', ['nope extend'])
    extend.main(['hf:/m', '--length=64', '--text=/t', '--law=log_length', '--plan'])
    assert sys.argv[1:] == [
        f'--config={ROOT}/configs/checkpoints/extend.py:log_length',
        '--workdir=work/extend',
        '--config.init=hf:/m',
        '--config.length=64',
        '--config.data.source=text:/t',
        '--plan',
    ]


def test_memory_that_runs_out_is_no_traceback_and_another_error_is() -> None:
    said = r'^error: not enough memory: RESOURCE_EXHAUSTED: 9G$'
    with pytest.raises(SystemExit, match=said), flags.ending(ValueError):
        raise RuntimeError('RESOURCE_EXHAUSTED: 9G\nmore')
    with pytest.raises(RuntimeError, match='INTERNAL'), flags.ending(ValueError):
        raise RuntimeError('INTERNAL')


@pytest.mark.parametrize(
    'stray',
    [
        ['/m', '--length=8', '--text=t'],
        ['hf:/m', 'x', '--length=8', '--text=t'],
        ['hf:/m', '--length=8'],
        ['hf:/m', '--length=8', '--text=t', '--config.data.source=jsonl:t'],
    ],
)
def test_extend_refuses_what_is_no_checkpoint(
    stray: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        extend.main(stray)
    assert ended.value.code == 2 and 'error: ' in capsys.readouterr().err


def test_the_folder_of_commands_has_no_other_modules() -> None:
    shared = {'__init__', 'checkpoint', 'corpus', 'declared', 'flags', 'models'}
    found = {path.stem for path in pathlib.Path(cli.__file__).parent.glob('*.py')} - shared
    named = {module.rpartition('.')[2] for module, _ in cli.COMMANDS.values() if '.cli.' in module}
    assert found == named
