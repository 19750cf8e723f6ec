"""Start-up: what a command has loaded by its first line. The rest is loaded where it is used."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from experiments import config_files, pieces
from experiments.cli import COMMANDS
from experiments.pieces import Piece
from tests.experiments.report import work

ROOT = pathlib.Path(__file__).parents[2]
# Of these each takes a tenth of a second or more.
LATE = {
    'grain', 'jax.experimental.pallas', 'lm_eval', 'matplotlib', 'optax', 'orbax', 'pyarrow',
    'sentencepiece', 'tensorflow_datasets', 'tokenizers', 'torch', 'transformers',
}  # fmt: skip
TOOLS = [module for module, _ in COMMANDS.values() if module.startswith('experiments.cli.')]
WITHOUT_MODELS = ('experiments.cli.extend', 'experiments.cli.prepare')
# `experiments.run` up to its first message; tells it, and what has been loaded by then.
UP_TO_THE_FIRST_LINE = """
import logging, os, sys
from absl import app
from experiments import run

class First(logging.Handler):
    def emit(self, record):
        print(record.getMessage().partition(':')[0], *sys.modules, flush=True)
        os._exit(0)

logging.getLogger('experiments').addHandler(First())
app.run(run.main, flags_parser=run.parse_flags)
"""


# Modules, calls that need no model, and their exit status. WORK: a work folder.
FLAGS = '["run", "--config=configs/first_paper/fig1.py:quick", "--workdir=w", "--config.train.x=1"]'
WITHOUT_JAX = [
    ('cli', 'usage() and 0', 0),
    ('run', f'parse_flags({FLAGS})', 2),
    ('claims', 'main(["--workdir=WORK"])', 0),
    ('draw', 'main(["WORK/figures/fig5"])', 0),
    ('report.__main__', 'main(["WORK"])', 0),
    ('status', 'main(["WORK"])', 0),
]


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    root = work.make(tmp_path_factory.mktemp('work'))
    home = f'runs/{work.RUN}'
    notes = f'{home}/.lock', f'{home}/failed.json'
    done = Piece('train', True, (), home, 'done.json', *notes, ())
    pieces.write(root, 'fig5', [done])
    return root


def output(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_plan_is_told_before_what_only_its_pieces_need_is_loaded(tmp_path: pathlib.Path) -> None:
    config = config_files.place('fig4')
    flags = (f'--config={config}:quick', f'--workdir={tmp_path}')
    told = output('-c', UP_TO_THE_FIRST_LINE, *flags)
    assert told.startswith('to make ')
    loaded = set(told.split())
    assert 'experiments.command' in loaded and not LATE & loaded


@pytest.mark.parametrize('module', TOOLS)
def test_a_command_reads_its_flags_before_it_loads_what_its_work_needs(module: str) -> None:
    script = f"""
import sys
import {module} as command
try:
    command.main(['--no-such-flag'])
except SystemExit as end:
    print(*sys.modules, f'status={{end.code}}')
"""
    loaded = set(output('-c', script).split())
    late = LATE | {'jax', 'flax'} if module in WITHOUT_MODELS else LATE
    assert {module, 'status=2'} <= loaded and not late & loaded


@pytest.mark.parametrize(('module', 'call', 'status'), WITHOUT_JAX)
def test_what_needs_no_model_loads_no_jax(
    module: str, call: str, status: int, folder: pathlib.Path
) -> None:
    script = f"""
import sys
import experiments.{module} as command
try:
    status = command.{call.replace('WORK', str(folder))}
except SystemExit as end:
    status = end.code
print(*sys.modules, f'status={{status}}')
"""
    loaded = set(output('-c', script).split())
    late = {'cli': {'absl', 'argparse', 'numpy'}, 'report.__main__': {'tensorboardX'}}
    assert f'status={status}' in loaded
    assert not {'jax', 'flax', 'optax', 'orbax', 'torch', *late.get(module, ())} & loaded
