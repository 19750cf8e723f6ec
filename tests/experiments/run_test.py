"""The command as a user runs it: train, measure, draw; again; stopped and started; bad input."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from ml_collections import ConfigDict

from experiments import config_files, draw

ROOT = pathlib.Path(__file__).parents[2]
TINY = {
    'model.layers': 2,
    'model.width': 16,
    'model.heads': 2,
    'model.kv_heads': 1,
    'model.mlp_width': 32,
    'train.length': 16,
    'train.batch_size': 8,
    'train.steps': 40,
    'train.warmup_steps': 4,
    'search.steps': 10,
    'search.warmup_steps': 2,
    'compute.checkpoint_every': 10,
    'compute.log_every': 1,
    'evaluation.windows': 16,
    'grid.windows': 8,
    'grid.increment': 0.5,
}


@pytest.fixture(scope='module')
def text(tmp_path_factory) -> pathlib.Path:
    """A folder of small text files, one of them not UTF-8."""
    folder = tmp_path_factory.mktemp('text')
    write_texts(folder)
    return folder


def write_texts(folder: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(60):
        words = rng.choice(['the', 'cat', 'sat', 'on', 'a', 'mat', 'and', 'left'], 200)
        (folder / f'{number}.txt').write_text(' '.join(words))
    (folder / 'latin.txt').write_bytes(b'caf\xe9 ' * 200)


def shrink(config: ConfigDict, folder: pathlib.Path, steps: int = 4) -> ConfigDict:
    """A config as TINY has it, on texts in a new folder."""
    text = folder / 'text'
    text.mkdir(exist_ok=True)
    write_texts(text)
    config.update_from_flattened_dict({**TINY, 'data.source': f'text:{text}'})
    config.train.steps, config.train.warmup_steps = steps, 1
    return config


def command(config: str, workdir: pathlib.Path, text: pathlib.Path, *more: str) -> list[str]:
    # What nothing in a config reads is refused.
    unused = 'search' if config.startswith('fig1') else '-'
    options = {k: v for k, v in TINY.items() if not k.startswith(unused)}
    flags = [f'--config.{k}={v}' for k, v in {**options, 'data.source': f'text:{text}'}.items()]
    name, _, argument = config.partition('.py')
    config = f'--config={config_files.place(name)}{argument}'
    return [sys.executable, '-m', 'experiments.run', config, f'--workdir={workdir}', *flags, *more]


def run(*args, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(*args, **kwargs), cwd=ROOT, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope='module')
def finished(tmp_path_factory, text) -> tuple[pathlib.Path, subprocess.CompletedProcess]:
    workdir = tmp_path_factory.mktemp('work') / 'with space'
    return workdir, run('fig4.py:quick', workdir, text)


def test_one_command_draws_the_figure(finished):
    workdir, result = finished
    assert result.returncode == 0, result.stderr[-3000:]
    figure = workdir / 'figures' / 'fig4'
    for name in ('fig4.png', 'fig4.pdf', 'fig4.csv', 'summary.json', 'caption.txt'):
        assert (figure / name).stat().st_size > 0
    assert result.stdout.strip().endswith('fig4.png')
    for folder in (workdir / 'records').iterdir():
        assert (folder / 'records.npz').exists()
        assert list(folder.glob('*.csv'))


def test_figures_are_redrawn(finished):
    workdir, _ = finished
    png = workdir / 'figures' / 'fig4' / 'fig4.png'
    before = png.read_bytes()
    png.unlink()
    assert draw.main([str(png.parent)]) == 0
    assert png.read_bytes() == before


BAD_INPUT = {
    '--config=configs/fig99.py': '--config: there is no file configs/fig99.py; accepted: NAME:SI',
    '--config=configs/shared/base.py': 'configs/shared/base.py is no config: it has no get_config',
    '--config=README.md': '--config: it cannot be read: SyntaxError: ',
    '--config.model.position=alibi': "it takes named values, as \"{'kind': 'alibi'}\"",
    '--config.evals.nope.corpus=a': "evals.nope.corpus is 'a'; the config has the corpora []",
    '--config.train.lenght=8': '--config.train.lenght is unknown; accepted: b1, ',
    '--config.model.kv_heads=3': 'model.kv_heads',
    '--profile=-1': 'compute.profile is -1',
    'stray': 'stray',
    '--config=configs/first_paper/fig1.py:huge': 'accepted: fig1:quick',
    '--config.data.source=text:nowhere': 'nowhere',
    '--config.train.batch_size=7': 'train.batch_size',
    '--config.foo=1': '--config.foo is unknown; accepted: compute, data, ',
    '--config.train.steps.few=1': '--config.train.steps is 2400, which has no fields',
    '--config.runs.nope.step=1': 'runs.nope.step is unknown; accepted: ',
    '--config.evals.nope.multiplier=x': "evals.nope.multiplier is 'x'; it must be finite",
    '--config.evals.nop.times=2.0': '--config.evals.nop is unknown; accepted: grid_4x/, nope, ',
    '--config.name=../../x': "name is '../../x'; accepted: up to 200 letters",
    '--config.seeds=(True,)': 'seeds is (True,); accepted: whole numbers from 0',
    '--config.compute.checkpoints=ftp://x/y': "compute.checkpoints is 'ftp://x/y'; accepted",
    '--config.train.batch_size=1000000000': 'need at least ',
    '--config.train.steps=100000000000000000000': 'accepted: up to 2,147,483,647',
    '--workdir=': 'it must name a folder',
}
# The command for each line of arguments, in a child of a process that has imported it once.
MANY_COMMANDS = """
import os, sys
from absl import app
from experiments import command, run  # the first imports JAX
for line in sys.stdin.read().splitlines():
    errors, *arguments = line.split('\t')
    child = os.fork()
    if not child:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        sys.argv = ['run', *arguments]
        app.run(run.main, flags_parser=run.parse_flags)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope='module')
def refused(tmp_path_factory, text) -> dict[str, tuple[int, str, pathlib.Path]]:
    """By option: exit status, stderr and work folder."""
    folders = {option: tmp_path_factory.mktemp('refused') for option in BAD_INPUT}
    lines = []
    for option, folder in folders.items():
        more = ('--config.compute.accumulate=2', option)
        arguments = command('fig1.py:quick', folder / 'work', text, *more)[3:]
        lines.append('\t'.join([str(folder / 'errors'), *arguments]))
    done = subprocess.run(
        [sys.executable, '-c', MANY_COMMANDS],
        cwd=ROOT,
        input='\n'.join(lines),
        capture_output=True,
        text=True,
        timeout=300,
    )
    statuses = [int(line) for line in done.stdout.split()]
    return {
        option: (status, (folder / 'errors').read_text(), folder / 'work')
        for (option, folder), status in zip(folders.items(), statuses, strict=True)
    }


@pytest.mark.parametrize('option', BAD_INPUT)
def test_bad_input_ends_before_compilation(refused, option):
    status, errors, workdir = refused[option]
    assert status == 2
    assert BAD_INPUT[option] in errors
    assert errors.count('error: ') == 1 and 'Traceback' not in errors
    assert not list(workdir.glob('runs/*/checkpoints'))
    assert not (workdir / 'figures').exists(), 'a figure that was never begun takes no name'


def test_help_is_no_failure():
    done = subprocess.run(
        [sys.executable, '-m', 'experiments.run', '--help'],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0
    assert '--workdir' in done.stdout and '--config' in done.stdout
