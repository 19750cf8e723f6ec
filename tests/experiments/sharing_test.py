"""Several commands on one work folder finish a sweep together, one of them killed on the way."""

from __future__ import annotations

import collections
import json
import pathlib
import re
import signal
import subprocess
import time

import pytest

from tests.experiments import run_test

# The encodings' patterns of layers take four.
MORE = ('--config.train.steps=150', '--config.model.layers=4')


def start(workdir: pathlib.Path, text: pathlib.Path) -> subprocess.Popen:
    command = run_test.command('encodings.py:quick', workdir, text, *MORE)
    unused = ('--config.search', '--config.grid')
    kept = [option for option in command if not option.startswith(unused)]
    return subprocess.Popen(
        kept,
        cwd=run_test.ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def taken(errors: str) -> list[str]:
    """The pieces that a command has made or begun, as it tells."""
    return re.findall(r'^\d\d:\d\d:\d\d (?:train|measure) +(\S+)', errors, re.MULTILINE)


@pytest.mark.slow
def test_three_commands_finish_what_a_killed_one_leaves(tmp_path: pathlib.Path) -> None:
    text, workdir = tmp_path / 'text', tmp_path / 'work'
    text.mkdir()
    run_test.write_texts(text)
    commands = [start(workdir, text) for _ in range(3)]
    deadline = time.monotonic() + 300
    while len(list(workdir.glob('runs/*/metrics.jsonl'))) < 3 and time.monotonic() < deadline:
        assert all(c.poll() is None for c in commands), commands[0].communicate()[1][-2000:]
        time.sleep(0.05)
    commands[0].send_signal(signal.SIGKILL)
    ended = [(c.communicate(timeout=600)[1], c.returncode) for c in commands]
    assert [code for _, code in ended] == [-signal.SIGKILL, 0, 0], ended[1][0][-2000:]
    assert all(taken(errors) for errors, _ in ended), 'each has made something'
    times = collections.Counter(piece for errors, _ in ended for piece in taken(errors))
    left = taken(ended[0][0])[-1]
    assert {piece for piece, count in times.items() if count > 1} == {left}
    done = [json.loads(path.read_text()) for path in workdir.glob('runs/*/done.json')]
    assert len(done) == 6 and {run['steps'] for run in done} == {150}
    assert (workdir / 'figures' / 'encodings' / 'encodings.png').exists()
