"""Samples survive a kill at any byte, and are never there twice."""

from __future__ import annotations

import math
import pathlib

import pytest

from nope.evals.samples import SampleLog

ROWS = {'a/0': {'loss': 0.1, 'text': 'é\n'}, 'a/1': {'loss': 1e-9, 'text': ''}}


def test_what_was_appended_is_there_again(tmp_path: pathlib.Path) -> None:
    SampleLog(tmp_path / 'new' / 'samples.jsonl').append(ROWS)
    log = SampleLog(tmp_path / 'new' / 'samples.jsonl')
    assert {key: log[key] for key in ROWS} == ROWS
    assert len(log) == 2 and 'a/0' in log and 'a/2' not in log


def test_a_kill_at_any_byte_loses_the_cut_sample_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'samples.jsonl'
    SampleLog(path).append(ROWS)
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord('\n')]
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        log = SampleLog(path)
        assert len(log) == sum(end <= size for end in ends)
        log.append({key: row for key, row in ROWS.items() if key not in log})
        assert path.read_bytes() == content


def test_a_sample_is_appended_once(tmp_path: pathlib.Path) -> None:
    log = SampleLog(tmp_path / 'samples.jsonl')
    log.append(ROWS)
    with pytest.raises(ValueError, match="'a/1' is finished already"):
        log.append({'a/1': {}})
    assert len(SampleLog(tmp_path / 'samples.jsonl')) == 2


def test_a_sample_that_cannot_be_written_is_not_finished(tmp_path: pathlib.Path) -> None:
    log = SampleLog(tmp_path / 'samples.jsonl')
    with pytest.raises(ValueError, match='not JSON compliant'):
        log.append({'a': {'score': math.nan}})
    assert 'a' not in log


def test_another_file_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'samples.jsonl'
    for line in ('[1]', '[' * 100_000):
        path.write_text(f'{{"key": "a"}}\n{line}\n')
        with pytest.raises(ValueError, match='line 2'):
            SampleLog(path)
