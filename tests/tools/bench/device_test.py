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


def command(source: str, seconds: float = 60.0, **more: Any) -> Any:
    return tool.Command('it', ('-c', source), seconds, **more)


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


@pytest.mark.parametrize(('source', 'more', 'ended'), [
    ('1', {'under': ('no-profiler', '--all')}, ('not run, not installed: no-profiler', '')),
    ('import os; print(os.environ["SEEN"])', {'under': ('env', 'SEEN=3')}, ('ended', '3')),
    ('import os; print(os.environ["XLA_FLAGS"][-5:])', {'flags': '--one'}, ('ended', '--one')),
])  # fmt: skip
def test_a_command_may_be_watched_and_have_flags(
    source: str, more: dict[str, Any], ended: tuple[str, str], tmp_path: pathlib.Path
) -> None:
    (row,) = tool.run_stage('why', [command(source, **more)], tmp_path, 60.0)
    assert (row.how, row.last) == ended


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
    assert works.pop('greedy')['ms_per_token'] > 0
    assert all(line['mfu'] > 0 for line in works.values())
    imports = [line['stage'] for line in lines if line['command'] == 'import']
    assert imports == ['import', 'compile', 'evaluate with entropy', 'export', 'compare']
    found = [json.loads(line) for line in (tmp_path / 'fast.jsonl').read_text().splitlines()]
    assert {line['pass'] for line in found} >= {'forward', 'gradient_entropy'}


@pytest.mark.parametrize(('platforms', 'stage', 'said'), [
    ('cpu', 'fast', "JAX_PLATFORMS is 'cpu'; accepted: cuda,cpu and tpu,cpu, or --dry"),
    ('tpu,cpu', 'why', 'stage why on a tpu; accepted: right, fast, model'),
])  # fmt: skip
def test_what_a_platform_lacks_is_said_before_anything_runs(
    platforms: str, stage: str, said: str, tmp_path: pathlib.Path
) -> None:
    words = [*DEVICE, 'right', stage, f'--out={tmp_path}']
    there = {**os.environ, 'JAX_PLATFORMS': platforms}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=there)
    assert done.returncode == 2 and said in done.stderr and not done.stdout
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_may_fail_is_timed_apart_from_others() -> None:
    """After an illegal address nothing else runs in its process."""
    found = [x for x in tool.stages('gpu', dry=False)['fast'] if x.name.startswith('times_')]
    asked = [[w for w in x.arguments if w in tool.BACKENDS['gpu']] for x in found]
    assert asked == [['library', 'mosaic_gpu'], ['library', 'pallas_gpu']]
    assert sum(x.seconds for x in tool.stages('gpu', dry=False)['fast']) <= tool.STAGE_SECONDS
