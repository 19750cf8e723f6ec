"""Runs with random positions: fine-tuning for several lengths."""

from __future__ import annotations

import itertools
import pathlib

from experiments.runs import RunSpec
from experiments.runs.training import batches
from nope.data.pipeline import positions_of
from tests.experiments.execute_test import bench_of
from tests.experiments.laws_test import experiment


def test_every_length_that_is_trained_has_positions_of_its_own(tmp_path: pathlib.Path) -> None:
    rope = {'position': {'kind': 'rope'}}
    found = experiment(
        tmp_path,
        ranged={'init': None, 'model': rope, 'train': {'random_positions': 8.0}},
        tuned={'init': 'ranged', 'finetune': {'times': (1.0, 4.0)}},
    )
    run = found.evals['tuned/seed0'].run
    assert isinstance(run, RunSpec) and run.model.position_range == 128
    assert run.train.lengths == (16, 64)
    made = itertools.islice(batches(bench_of(found, tmp_path / 'work'), run, 0), 3)
    for step, batch in enumerate(made):
        length = run.train.lengths[step % 2]
        assert batch.tokens.shape == (run.train.batch_size, length)
        for row, positions in enumerate(batch.positions):
            example = step * run.train.batch_size + row
            assert (positions == positions_of(run.data_seed, example, length, 128)).all()
