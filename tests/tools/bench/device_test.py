"""tools.bench.device without a device: its limits, its files, and a dry run."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

from nope.attention.api import PREFERRED
from nope.attention.cases import ACCELERATOR_CASES
from tests.quick import QUICK
from tools.bench import device as tool
from tools.bench.__main__ import PROGRAMS
from tools.bench.harness import ROOT

DEVICE = (sys.executable, '-m', 'tools.bench', 'device')


def command(source: str, seconds: float = 60.0) -> Any:
    return tool.Command('it', ('-c', source), seconds)


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: pathlib.Path) -> None:
    late = f'import time; time.sleep(3); open({str(tmp_path / "alive")!r}, "w")'
    source = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, '-c', {late!r}])
print('begun', flush=True)
time.sleep(60)
"""
    begun = time.monotonic()
    (row,) = tool.run_stage('right', [command(source, 2.0)], tmp_path, 60.0)
    assert (row.how, row.last) == ('killed after 2 s', 'begun')
    assert time.monotonic() - begun < 20
    time.sleep(3)
    assert not (tmp_path / 'alive').exists()


def test_each_line_of_json_is_kept_with_its_command(tmp_path: pathlib.Path) -> None:
    source = """print('{"seconds": 1.5}'); print('3'); print('words'); raise SystemExit(3)"""
    (row,) = tool.run_stage('fast', [command(source)], tmp_path, 60.0)
    assert (row.how, row.last) == ('failed with 3', 'words')
    (line,) = (tmp_path / 'fast.jsonl').read_text().splitlines()
    assert json.loads(line) == {'command': 'it', 'seconds': 1.5}
    assert (tmp_path / 'fast.log').read_text().startswith('==== it: failed with 3\n{"seconds"')


def test_what_the_time_does_not_hold_is_named(tmp_path: pathlib.Path) -> None:
    sleeper = command('import time; time.sleep(60)')
    rows = tool.run_stage('right', [sleeper, sleeper], tmp_path, 6.0)
    assert [row.how for row in rows] == ['killed after 6 s', 'not run: the time is over']


def test_a_watching_program_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    under = tool.Command('it', ('-c', 'print(1)'), 60.0, ('no-such-profiler', '--all'))
    (row,) = tool.run_stage('why', [under], tmp_path, 60.0)
    assert row.how == 'not run, not installed: no-such-profiler'


def test_a_watching_program_starts_the_command(tmp_path: pathlib.Path) -> None:
    under = tool.Command(
        'it', ('-c', 'import os; print(os.environ["SEEN"])'), 60.0, ('env', 'SEEN=3')
    )
    (row,) = tool.run_stage('why', [under], tmp_path, 60.0)
    assert (row.how, row.last) == ('ended', '3')


@pytest.mark.parametrize('platform', ['gpu', 'tpu'])
def test_what_it_names_is_there(platform: str) -> None:
    assert (*tool.BACKENDS[platform], 'chunked') == PREFERRED[platform]
    assert set(tool.SHAPES) <= {case.name for case in ACCELERATOR_CASES}
    for commands in tool.stages(platform, dry=False).values():
        names = [x.arguments[2] for x in commands if x.arguments[:2] == tool.BENCH]
        assert set(names) <= {*PROGRAMS}
        tests = [word for x in commands for word in x.arguments if word.endswith('.py')]
        assert (names or tests) and all((ROOT / file).exists() for file in tests)
        assert all(x.seconds < tool.STAGE_SECONDS for x in commands)


@pytest.mark.slow
def test_it_runs_dry(tmp_path: pathlib.Path) -> None:
    stages = list(tool.stages('cpu', dry=True))
    words = [*DEVICE, *stages, '--dry', f'--out={tmp_path}']
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, 'XLA_FLAGS': QUICK},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for stage in stages:
        rows = (tmp_path / f'{stage}.md').read_text().splitlines()[2:]
        assert rows and all(' | ended | ' in row for row in rows)
    lines = [json.loads(line) for line in (tmp_path / 'model.jsonl').read_text().splitlines()]
    works = {line['work']: line for line in lines if 'work' in line}
    assert set(works) == {'step', 'search', 'loss', 'entropy', 'greedy'}
    assert all(line['tokens_per_second'] > 0 for line in works.values())
    assert works['greedy']['ms_per_token'] > 0 and all(
        line['mfu'] > 0 for work, line in works.items() if work != 'greedy'
    )
    stages_of_import = {line['stage'] for line in lines if line['command'] == 'import'}
    assert stages_of_import == {
        'import', 'compile', 'evaluate with entropy', 'export', 'compare'
    }  # fmt: skip
    found = [json.loads(line) for line in (tmp_path / 'fast.jsonl').read_text().splitlines()]
    assert {line['pass'] for line in found} >= {'forward', 'gradient_entropy'}


def test_a_platform_has_to_be_named(tmp_path: pathlib.Path) -> None:
    words = [*DEVICE, 'right', f'--out={tmp_path}']
    done = subprocess.run(
        words, capture_output=True, text=True, check=False,
        env={**os.environ, 'JAX_PLATFORMS': 'cpu'},
    )  # fmt: skip
    assert done.returncode == 2
    assert "JAX_PLATFORMS is 'cpu'; accepted: cuda,cpu and tpu,cpu, or --dry" in done.stderr


@pytest.mark.parametrize(('platforms', 'stage', 'said'), [
    ('cuda', 'right', "JAX_PLATFORMS is 'cuda'; accepted: cuda,cpu"),
    ('tpu,cpu', 'why', 'stage why on a tpu; accepted: right, fast, model'),
])  # fmt: skip
def test_what_a_platform_lacks_is_said_before_anything_runs(
    platforms: str, stage: str, said: str, tmp_path: pathlib.Path
) -> None:
    words = [*DEVICE, 'right', stage, f'--out={tmp_path}']
    done = subprocess.run(
        words, capture_output=True, text=True, check=False,
        env={**os.environ, 'JAX_PLATFORMS': platforms},
    )  # fmt: skip
    assert done.returncode == 2 and said in done.stderr and not done.stdout
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_may_fail_is_timed_apart_from_others() -> None:
    """After an illegal address nothing else runs in its process."""
    found = [x for x in tool.stages('gpu', dry=False)['fast'] if x.name.startswith('times_')]
    asked = [[w for w in x.arguments if w in tool.BACKENDS['gpu']] for x in found]
    assert asked == [['library', 'mosaic_gpu'], ['library', 'pallas_gpu'], ['library']]
    assert 'jax_hopper' in found[-1].arguments
    assert sum(x.seconds for x in tool.stages('gpu', dry=False)['fast']) <= tool.STAGE_SECONDS


def test_flags_reach_a_command(tmp_path: pathlib.Path) -> None:
    source = 'import os; print(os.environ["XLA_FLAGS"])'
    (row,) = tool.run_stage(
        'model', [tool.Command('it', ('-c', source), 60.0, flags='--one')], tmp_path, 60.0
    )
    assert row.how == 'ended' and row.last.split()[-1] == '--one'
