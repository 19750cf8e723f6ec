"""Fixtures of evaluations that log their samples."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from nope.data import DataConfig
from nope.data.documents import Documents, open_documents
from nope.data.sources import Text
from nope.evals.samples import SampleLog


@pytest.fixture
def log(tmp_path: pathlib.Path) -> SampleLog:
    return SampleLog(tmp_path / 'samples.jsonl')


@pytest.fixture(scope='module')
def books(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    """Random printable bytes, of which stock and we read the same."""
    folder = tmp_path_factory.mktemp('parity')
    draw = np.random.default_rng(0)
    for split in ('train', 'test'):
        (folder / 'books' / split).mkdir(parents=True)
        for i, size in enumerate((130, 40, 210, 170)):
            text = draw.integers(32, 127, size).astype(np.uint8).tobytes()
            (folder / 'books' / split / f'{i}.txt').write_bytes(text)
    config = DataConfig((Text(str(folder / 'books')),))
    return open_documents(config, split='test', cache=folder, bos=True)
