"""Start-up: what a command has loaded by its first line. The rest is loaded where it is used."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from experiments import config_files
from experiments.cli import COMMANDS

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
