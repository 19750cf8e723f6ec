"""Ranges, order and numbers of the figure of attention over training."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS
from experiments.figures.base import FigureOutput
from experiments.figures.given import FigureInput
from tests.experiments.figures import synthetic


def drawn(given: FigureInput | None = None) -> FigureOutput:
    return KINDS['emergence'].draw(given or synthetic.emergence_input())


def test_rows_have_every_head_and_the_loss_of_both_ranges_at_every_step() -> None:
    given = synthetic.emergence_input()
    rows = drawn(given).rows
    records = given.records['NoPE_240']
    for low, high in ((0.5, 1.0), (2.0, 4.0)):
        chosen = [
            row
            for row in rows
            if (row['record'], row['above_L'], row['up_to_L']) == ('NoPE_240', low, high)
        ]
        entropies = {(r['layer'], r['head']): r['value'] for r in chosen if r['layer'] != ''}
        assert len(entropies) == 16
        kept = slice(round(64 * low), round(64 * high))  # positions from 1: above, up to
        nats = records['entropy'][2, 3, kept].mean(dtype=float)
        assert entropies[2, 3] == pytest.approx(nats / np.log(2))
        (loss,) = (row['value'] for row in chosen if row['measure'] == 'loss_nats')
        assert loss == pytest.approx(records['loss'][kept].mean())
        bound = np.log2(np.arange(kept.start + 1, kept.stop + 1)).mean()
        assert all(r['bound_bits'] == pytest.approx(bound) for r in chosen if r['layer'] != '')
    assert {(row['step'], row['train_tokens']) for row in rows} == {
        (step, 2048 * step) for step in (24, 240, 2400)
    }


def test_steps_are_drawn_in_the_order_of_the_training() -> None:
    given = synthetic.emergence_input()
    turned = {'steps': list(reversed(given.options['steps']))}
    lines = drawn(dataclasses.replace(given, options=turned)).figure.axes[0].lines
    assert lines[0].get_xdata().tolist() == [24, 240, 2400]


def test_steps_of_two_runs_or_the_same_step_twice_are_refused() -> None:
    given = synthetic.emergence_input()

    def changed(**facts) -> FigureInput:
        one = synthetic.stating(given.records['NoPE_240'], **facts)
        return synthetic.with_records(given, NoPE_240=one)

    with pytest.raises(ValueError, match=r"'emergence': the runs differ in 'run_id'"):
        drawn(changed(run_id='another'))
    with pytest.raises(ValueError, match=r"two records of 'NoPE' are of the same step"):
        drawn(changed(step=24))


def test_records_that_end_before_the_second_range_are_refused() -> None:
    with pytest.raises(ValueError, match='up to position 255; it draws means up to 4 L = 256'):
        drawn(synthetic.emergence_input(length=255))
