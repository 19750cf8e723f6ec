"""Steps of the paper's sizes compile for pods that are not there; what does not fit is said to be
so."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os

import pytest

from tools.bench import aot

pytestmark = [
    pytest.mark.compile,
    pytest.mark.skipif(
        importlib.util.find_spec('libtpu') is None and 'NOPE_COMPILERS' not in os.environ,
        reason='libtpu is not installed',
    ),
]


def run(monkeypatch, capsys, *arguments: str) -> tuple[int, list[dict]]:
    monkeypatch.setattr('sys.argv', ['aot', *arguments])
    status = aot.main()
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.slow  # two minutes, a third of what all take
def test_pretraining_fits_a_pod_slice(monkeypatch, capsys) -> None:
    asked = ['--config=configs/first_paper/fig1.py:paper', '--topology=v5e:4x4', '--kind=train']
    status, (line,) = run(monkeypatch, capsys, *asked, '--only=none')
    assert status == 0 and line['fits']
    assert line['mesh'] == {'fsdp': 16}
    assert line['compiler'] == f'libtpu {importlib.metadata.version("libtpu")}'
    # Float32 parameters and moments of 1.034 billion parameters over sixteen chips.
    assert 0.23 < line['parameters_gib'] < 0.26
    assert 1.9 < line['optimizer_gib'] / line['parameters_gib'] < 2.1
    assert line['total_gib'] < line['capacity_gib'] == 14.4  # of 16
    # Layers are recomputed in the backward pass: 8 FLOPs a weight and token instead of 6.
    assert 1.25 < line['tflops'] / line['model_tflops'] < 1.4
    # Weights are gathered and gradients scattered once a micro-batch at least.
    assert sum(line['received_gib'].values()) > 16 * 3 * 15 / 16 * 2 * 1.03e9 / 2**30
    assert 0 < line['mfu_bound'] < 1


def test_what_does_not_fit_names_the_largest(monkeypatch, capsys) -> None:
    asked = [
        '--config=configs/first_paper/fig1.py:paper',
        '--topology=v5e:1x1',
        '--kind=train',
        '--mesh=fsdp=1',
    ]
    status, (line,) = run(monkeypatch, capsys, *asked, '--batch=4', '--only=none')
    assert status == 1 and not line['fits']
    assert 'HBM' in line['error'] and line['largest'] == 'optimizer'
    assert line['optimizer_gib'] > 7
