"""The log of the commands that worked on a work folder."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess

import jax
import pytest

from experiments import history
from nope.runtime import files


def rows(folder: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in (folder / history.FILE).read_text().splitlines()]


def test_every_command_adds_a_line_of_its_own(tmp_path):
    history.note(tmp_path, 'fig1', ['--config=configs/first_paper/fig1.py:quick'])
    history.note(tmp_path, 'fig4', [])
    first, second = rows(tmp_path)
    assert (first['figure'], second['figure']) == ('fig1', 'fig4')
    assert first['arguments'] == ['--config=configs/first_paper/fig1.py:quick']
    assert first['versions']['jax'] == jax.__version__
    assert first['device'] == jax.devices()[0].device_kind
    assert first['started'] <= second['started']


def test_a_line_that_a_full_disk_cut_does_not_take_the_next(tmp_path):
    history.note(tmp_path, 'fig1', [])
    path = tmp_path / history.FILE
    path.write_bytes(path.read_bytes()[:-20])
    history.note(tmp_path, 'fig4', [])
    cut, whole = (row for _, row in files.logged_rows(path))
    assert cut is None and whole is not None and whole['figure'] == 'fig4'


@pytest.mark.skipif(shutil.which('git') is None, reason='no git here')
def test_the_commit_is_that_of_the_checkout_and_says_where_files_were_changed(tmp_path):
    assert history.commit(tmp_path) is None

    def git(*arguments: str) -> str:
        identity = ['-c', 'user.name=n', '-c', 'user.email=n@example.com']
        command = ['git', *identity, *arguments]
        found = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return found.stdout.strip()

    git('init', '-q')
    assert history.commit(tmp_path) is None  # without a commit
    (tmp_path / 'file').write_text('1')
    git('add', 'file')
    git('commit', '-q', '-m', 'first')
    git('tag', 'v1')
    head = git('rev-parse', 'HEAD')
    assert history.commit(tmp_path) == head
    (tmp_path / 'file').write_text('2')
    assert history.commit(tmp_path) == f'{head}-dirty'
