"""The notebook experiments/tour.ipynb: as it is stored, and run from its first cell to its last."""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NOTEBOOK = ROOT / 'experiments/tour.ipynb'
FOLDER = "pathlib.Path('work/tour')"


def _source(cell: dict[str, Any]) -> str:
    return ''.join(cell['source'])


def _printed(cell: dict[str, Any]) -> str:
    return ''.join(
        ''.join(output['text'])
        for output in cell['outputs']
        if output['output_type'] == 'stream' and output['name'] == 'stdout'
    )


def _losses(cells: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Range of positions -> loss as trained and searched, from the table that a cell prints."""
    rows = re.findall(
        r'^(\(.*?L\]) +([\d.]+) +([\d.]+)$', '\n'.join(map(_printed, cells)), re.MULTILINE
    )
    return {name: (float(before), float(after)) for name, before, after in rows}


@pytest.fixture
def stored() -> list[dict[str, Any]]:
    cells = json.loads(NOTEBOOK.read_text())['cells']
    return [cell for cell in cells if cell['cell_type'] == 'code']


def test_the_stored_outputs_are_those_of_one_run_without_errors(stored: list) -> None:
    assert [cell['execution_count'] for cell in stored] == list(range(1, len(stored) + 1))
    assert not [o for cell in stored for o in cell['outputs'] if o['output_type'] == 'error']
    pictures = [o for cell in stored for o in cell['outputs'] if 'image/png' in o.get('data', {})]
    assert len(pictures) == 3
    assert NOTEBOOK.stat().st_size < 500_000
    for cell in stored:  # no folder of a machine
        assert not re.search(r'(?<![\w.])/(?:home|root|tmp|work|Users|content)/', _printed(cell))


def test_the_files_that_the_text_names_exist() -> None:
    cells = json.loads(NOTEBOOK.read_text())['cells']
    text = '\n'.join(_source(cell) for cell in cells)
    named = re.findall(r'\]\(\.\./([\w/.]+)\)|(?:`|=)(configs/[\w/]+\.py)', text)
    assert len(named) >= 5
    for link, config in named:
        assert (ROOT / (link or config)).exists(), link or config


@pytest.mark.slow
def test_the_notebook_runs_from_its_first_cell_to_its_last(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Jupyter runs it, in an empty work folder; a cell that fails raises here."""
    nbclient = pytest.importorskip('nbclient', reason='the extra notebook is not installed')
    nbformat = pytest.importorskip('nbformat')
    text = NOTEBOOK.read_text()
    assert text.count(FOLDER) == 1
    book = nbformat.reads(text.replace(FOLDER, f"pathlib.Path('{tmp_path}/tour')"), 4)
    monkeypatch.setenv('PYTHONPATH', f'{ROOT}:{os.environ.get("PYTHONPATH", "")}')
    monkeypatch.delenv('XLA_FLAGS', raising=False)  # those of the tests
    where = {'metadata': {'path': str(NOTEBOOK.parent)}}
    nbclient.NotebookClient(book, timeout=1500, kernel_name='python3', resources=where).execute()
    losses = _losses([cell for cell in book.cells if cell['cell_type'] == 'code'])
    assert len(losses) == 3
    before, after = losses['(2L, 4L]']
    assert after < before - 0.2
    assert (tmp_path / 'tour/longer/model.safetensors').exists()
    assert (tmp_path / 'tour/figures/fig1/fig1.png').exists()
