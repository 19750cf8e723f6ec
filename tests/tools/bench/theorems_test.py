"""tools.bench.theorems over a few tokens."""

from __future__ import annotations

import csv
import json
import pathlib

import numpy as np
import pytest

from tools.bench import theorems as tool

FILES = ('theorems.csv', 'theorems.pdf', 'theorems.png')


def test_both_theorems_are_measured_and_drawn(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool.main(['--longest=512', '--tokens=12', f'--out={tmp_path}'])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    counted = {line['dtype']: line for line in lines if line['theorem'] == 1}
    assert counted['float32']['exact_to'] == 512
    assert counted['float64, ramps reversed']['exact_to'] == 512
    assert 64 <= counted['bfloat16']['exact_to'] <= 96
    compared = {line['dtype']: line['largest_error'] for line in lines if line['theorem'] == 2}
    assert compared['float32'] < 1e-5 < compared['bfloat16']
    assert all((tmp_path / name).stat().st_size for name in FILES)
    with (tmp_path / 'theorems.csv').open() as file:
        rows = list(csv.DictReader(file))
    errors_T = np.array([float(row['error (bfloat16)']) for row in rows])
    assert np.flatnonzero(np.abs(errors_T) >= 0.5)[0] == counted['bfloat16']['exact_to']
