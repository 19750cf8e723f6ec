"""tools/quickstart: what it runs, on which work folder, and how it ends. No project is installed: a
stand-in for Python notes the commands."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# Commands of the project are noted; the experiment ends with STATUS, or waits for a signal.
PYTHON = """#!/bin/sh
case $* in
*sys.prefix*) echo "{folder}" ;;
'-m pip '*) ;;
'-m experiments.run '*)
    echo "$*" >>"{folder}/commands"
    [ "$STATUS" = wait ] || exit "$STATUS"
    trap 'echo saved >>"{folder}/commands"; exit 143' TERM
    while :; do sleep 0.05; done
    ;;
'-m experiments.report '*) echo "$*" >>"{folder}/commands" ;;
*) exec {python} "$@" ;;
esac
"""


@pytest.fixture
def python(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / 'python'
    path.write_text(PYTHON.format(folder=tmp_path, python=sys.executable))
    path.chmod(0o755)
    return path


def start(python: pathlib.Path, *arguments: str, status: str = '0') -> subprocess.Popen:
    return subprocess.Popen(
        ['sh', str(ROOT / 'tools/quickstart'), '--active', *arguments],
        env={**os.environ, 'PYTHON': str(python), 'STATUS': status},
        cwd=python.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def commands(python: pathlib.Path) -> list[str]:
    path = python.parent / 'commands'
    return path.read_text().splitlines() if path.exists() else []


OWN = f'--config={ROOT}/configs/first_paper/fig1.py:quick --workdir={ROOT}/work/quick'


@pytest.mark.parametrize(('arguments', 'folder'), [
    ([], f'{ROOT}/work/quick'),
    (['--workdir=a b', '--config.train.steps=6'], 'a b'),
    (['--workdir', 'c', '--config.train.steps=6'], 'c'),
    (['--workdir=a', '--workdir=d'], 'd'),
    (['--plan'], None),
    (['--plan-for=h100:8'], None),
])  # fmt: skip
def test_the_report_is_of_the_folder_of_the_experiment_and_a_plan_has_none(
    arguments: list[str], folder: str | None, python: pathlib.Path
) -> None:
    assert start(python, *arguments).wait(timeout=120) == 0
    report = [] if folder is None else [f'-m experiments.report {folder}']
    assert commands(python) == [' '.join(['-m experiments.run', OWN, *arguments]), *report]


@pytest.mark.parametrize(('arguments', 'status'), [([], 2), (['--config.name=x', '--help'], 0)])
def test_an_experiment_that_fails_and_help_have_no_report(
    arguments: list[str], status: int, python: pathlib.Path
) -> None:
    assert start(python, *arguments, status=str(status)).wait(timeout=120) == status
    (command,) = commands(python)
    assert command.endswith('--help' if arguments else OWN)


def test_a_stop_reaches_the_experiment(python: pathlib.Path) -> None:
    running = start(python, status='wait')
    until = time.monotonic() + 120
    while not commands(python) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.3)  # until it waits for the signal
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=60) == 143
    assert commands(python)[1:] == ['saved']


@pytest.mark.parametrize(('given', 'found'), [
    ({}, 'none, none'),
    ({'PYTHONDONTWRITEBYTECODE': '1'}, 'none, /e v/bytecode'),
    ({'PYTHONDONTWRITEBYTECODE': '1', 'PYTHONPYCACHEPREFIX': '/own'}, 'none, /own'),
])  # fmt: skip
def test_bytecode_that_may_not_be_beside_its_source_is_in_the_environment(
    given: dict[str, str], found: str
) -> None:
    script = f"""root={ROOT}; . {ROOT}/tools/_environment.sh; folder='/e v'; keep_bytecode
sh -c 'echo "${{PYTHONDONTWRITEBYTECODE:-none}}, ${{PYTHONPYCACHEPREFIX:-none}}"'"""
    names = 'PYTHONDONTWRITEBYTECODE', 'PYTHONPYCACHEPREFIX'
    rest = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(['sh', '-c', script], env=rest | given, capture_output=True, text=True)
    assert done.stdout.strip() == found, done.stderr


def test_callers_take_turns_where_there_is_no_flock(tmp_path: pathlib.Path) -> None:
    """As on macOS: Python takes the lock, which ends with the shell that it was taken for."""
    tools = tmp_path / 'bin'
    tools.mkdir()
    for name in ('dirname', 'mkdir', 'sleep'):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    script = f"""set -eu; root={ROOT}; . {ROOT}/tools/_environment.sh
take_turn '{tmp_path}/environment.lock'; echo "$1 begins" >>'{tmp_path}/log'
sleep 0.5; echo "$1 ends" >>'{tmp_path}/log'; $2"""
    shell = shutil.which('sh')
    assert shell
    ends = {'one': 'end_turn', 'two': 'fail broken', 'three': 'end_turn'}
    callers = [
        subprocess.Popen(
            [shell, '-c', script, 'sh', *call], env={'PATH': str(tools), 'PYTHON': sys.executable}
        )
        for call in ends.items()
    ]
    assert [caller.wait(timeout=60) for caller in callers] == [0, 1, 0]
    lines = [line.split() for line in (tmp_path / 'log').read_text().splitlines()]
    assert [what for _, what in lines] == ['begins', 'ends'] * 3
    assert all(lines[i][0] == lines[i + 1][0] for i in (0, 2, 4))


def test_a_lock_that_cannot_be_made_ends_the_command(tmp_path: pathlib.Path) -> None:
    script = f"""set -eu; root={ROOT}; . {ROOT}/tools/_environment.sh
take_turn '{tmp_path}/file/lock'; echo had its turn"""
    (tmp_path / 'file').write_text('')
    ended = subprocess.run(['sh', '-c', script], capture_output=True, text=True, timeout=60)
    assert ended.returncode and 'had its turn' not in ended.stdout and ended.stderr


def test_a_comment_that_a_shell_passes_on_is_refused_before_anything(python: pathlib.Path) -> None:
    running = start(python, '#', 'makes', '.venv')
    _, said = running.communicate(timeout=60)
    assert running.returncode == 1 and b'takes # for an argument' in said
    assert not commands(python)


@pytest.mark.parametrize(('virtual', 'found'), [(True, '0'), (False, '1')])
def test_nothing_is_installed_for_the_user_in_a_virtual_environment(
    tmp_path: pathlib.Path, virtual: bool, found: str
) -> None:
    if virtual:
        (tmp_path / 'pyvenv.cfg').touch()
    (tmp_path / 'pyproject.toml').touch()
    (tmp_path / 'python').write_text('#!/bin/sh\necho "user $PIP_USER" >&2\n')
    (tmp_path / 'python').chmod(0o755)
    script = f"""set -eu; root={tmp_path}; . {ROOT}/tools/_environment.sh
python={tmp_path}/python; installed={tmp_path}/nope-installed; install_project '' ''"""
    done = subprocess.run(
        ['sh', '-c', script], env=os.environ | {'PIP_USER': '1'}, capture_output=True, text=True
    )
    assert done.returncode == 0 and f'user {found}\n' in done.stderr


@pytest.mark.skipif(not (ROOT / '.git').exists(), reason='no clone')
def test_what_shells_read_has_line_feeds_in_every_clone() -> None:
    scripts = ['.ci/run', 'tools/_environment.sh', 'tools/quickstart', 'tools/test']
    scripts += [str(path.relative_to(ROOT)) for path in (ROOT / 'tools/launch').glob('*.s*')]
    found = subprocess.run(
        ['git', 'check-attr', 'eol', *scripts], cwd=ROOT, capture_output=True, text=True
    )
    assert len(scripts) == 7
    assert found.stdout.splitlines() == [f'{script}: eol: lf' for script in scripts]
