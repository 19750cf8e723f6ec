"""`nope prepare`, as a user calls it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np

from nope.data import DataConfig, stores
from nope.data.sources import Shards, Text

ROOT = pathlib.Path(__file__).resolve().parents[2]


def command(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, '-m', 'experiments.cli.prepare', *arguments],
        env=os.environ | {'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_prepares_shards_that_training_reads(corpus, cache, tmp_path):
    out = tmp_path / 'shards'
    done = command(
        '--source=text', f'--path={corpus}', '--tokenizer=bytes', f'--out={out}', '--workers=2'
    )
    assert done.returncode == 0, done.stderr
    assert 'tokens/s' in done.stderr
    assert 'train' in done.stdout and 'vocabulary of 258' in done.stdout
    shards, text = (
        stores.open_store(DataConfig((source,)), 0, 'train', cache)
        for source in (Shards(str(out)), Text(str(corpus)))
    )
    assert shards.tokens == text.tokens
    start = np.asarray([0])
    assert np.array_equal(shards.windows(start, shards.tokens), text.windows(start, text.tokens))


def test_bad_input_is_one_line_and_not_a_trace(tmp_path):
    done = command('--source=text', '--path=/missing', f'--out={tmp_path / "out"}')
    assert done.returncode != 0
    assert done.stderr.startswith("error: --path: there is no file or folder '/missing'")
    assert 'Traceback' not in done.stderr


def test_a_record_length_is_asked_for_by_its_flag(tmp_path):
    out = f'--out={tmp_path / "out"}'
    assert '--record_length is None' in command('--source=retrieval', out).stderr
    typed = command('--source=retrieval', '--path=128', out).stderr
    assert '--record_length=128 with it' in typed


def test_keys_are_hidden_in_what_the_flag_names(tmp_path):
    out = f'--out={tmp_path / "out"}'
    done = command('--source=retrieval', '--record_length=300', '--haystacks=books', out)
    assert "--haystacks is ('books',); accepted: ('filler',), ('text',), (" in done.stderr


def test_flags_that_the_source_does_not_read_are_refused(corpus, tmp_path):
    given = f'--path={corpus}', f'--out={tmp_path / "out"}'
    for flag in (
        '--leave_out=set=A',
        '--field=body',
        '--needles=3',
        '--haystacks=text',
        '--max_line_bytes=9',
    ):
        done = command('--source=text', *given, flag)
        name = flag.partition('=')[0]
        said = f'error: {name} is given, and --source=text does not read it; it is for '
        assert done.stderr.startswith(said), done.stderr
    assert not (tmp_path / 'out').exists()
