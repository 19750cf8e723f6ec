"""The same study on one device and over processes and meshes: the same losses, examples, lambda,
entropy, scores and continuations."""

from __future__ import annotations

import json
import pathlib
from typing import NamedTuple

import numpy as np
import pytest

from tests.distributed import launching


class Layout(NamedTuple):
    processes: int
    devices: int  # of each
    mesh: str
    accumulate: int = 1


pytestmark = pytest.mark.slow

LAYOUTS = (
    Layout(2, 2, 'fsdp=2,tensor=2', 2),
    Layout(2, 1, 'data=2', 2),
    Layout(1, 8, 'data=8'),
    Layout(1, 8, 'fsdp=8'),
    Layout(1, 8, 'data=2,tensor=4', 2),
    Layout(1, 8, 'fsdp=2,context=4'),
    Layout(1, 8, 'data=2,fsdp=2,context=2', 2),
    Layout(2, 1, 'fsdp=2'),
    Layout(2, 1, 'tensor=2'),
    Layout(2, 1, 'context=2'),
    Layout(2, 4, 'data=2,fsdp=2,tensor=2'),
    Layout(2, 2, 'tensor=2,context=2'),
    Layout(4, 1, 'data=4', 2),
    Layout(4, 1, 'data=2,fsdp=2'),
    Layout(4, 1, 'fsdp=2,context=2'),
    Layout(4, 2, 'data=2,fsdp=2,context=2'),
)


def study(folder: pathlib.Path, layout: Layout) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'text').mkdir()
    draw = np.random.default_rng(0)
    for number in range(60):
        words = draw.choice(['the', 'cat', 'sat', 'on', 'a', 'mat', 'and', 'left'], 150)
        (folder / 'text' / f'{number}.txt').write_text(' '.join(words))
    arguments = ['-m', 'tests.distributed.worker', str(folder), layout.mesh, str(layout.accumulate)]
    started = launching.start(arguments, layout.processes, layout.devices)
    for status, _, errors in launching.finish(started, 600):
        assert status == 0, errors[-3000:]
    return folder


@pytest.fixture(scope='module')
def alone(tmp_path_factory) -> pathlib.Path:
    return study(tmp_path_factory.mktemp('alone') / 'study', Layout(1, 1, ''))


@pytest.mark.parametrize(
    'layout',
    LAYOUTS,
    ids=lambda layout: f'{layout.processes}x{layout.devices}-{layout.mesh}',
)
def test_layout_changes_nothing_but_rounding(
    layout: Layout, alone: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = study(tmp_path / 'study', layout)
    ours, theirs = (json.loads((f / 'losses.json').read_text()) for f in (folder, alone))
    for name, steps in (('pretraining', 50), ('search', 12)):
        assert len(ours[name]) == steps
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-5)
    with np.load(folder / 'found.npz') as found, np.load(alone / 'found.npz') as expected:
        np.testing.assert_array_equal(found['examples'], expected['examples'])
        np.testing.assert_array_equal(found['made'], expected['made'])
        for name in ('loss', 'entropy', 'resampled', 'lam', 'perplexity', 'scores'):
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=2e-4, err_msg=name)
