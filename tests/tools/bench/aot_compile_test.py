"""A step of the paper's size that does not fit a device that is not there is said to be so."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os

import pytest

from tools.bench import aot


@pytest.mark.compile
@pytest.mark.skipif(
    importlib.util.find_spec('libtpu') is None and 'NOPE_COMPILERS' not in os.environ,
    reason='libtpu is not installed',
)
def test_what_does_not_fit_names_the_largest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ['--config=configs/first_paper/fig1.py:paper', '--topology=v5e:1x1', '--kind=train']
    shape = ['--mesh=fsdp=1', '--batch=4', '--only=none']
    monkeypatch.setattr('sys.argv', ['aot', *asked, *shape])
    assert aot.main() == 1
    line = json.loads(capsys.readouterr().out)
    assert not line['fits'] and line['compiler'] == f'libtpu {importlib.metadata.version("libtpu")}'
    assert 'HBM' in line['error'] and line['largest'] == 'optimizer'
    assert line['optimizer_gib'] > 7
