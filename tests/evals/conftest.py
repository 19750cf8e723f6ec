"""Fixtures of evaluations that log their samples."""

from __future__ import annotations

import pathlib

import pytest

from nope.evals.samples import SampleLog


@pytest.fixture
def log(tmp_path: pathlib.Path) -> SampleLog:
    return SampleLog(tmp_path / 'samples.jsonl')
