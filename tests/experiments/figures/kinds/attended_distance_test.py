"""Histograms of the distance of the most attended key: heights, rows, table, other tasks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS
from tests.experiments.figures.synthetic import INPUTS, attended_records

GIVEN = INPUTS['attended_distance']
LABELS = [curve['label'] for curve in GIVEN.options['curves']]
FAR = [0.1 * (1 + e) + 0.01 for e in range(5)]  # means over seeds, all heads but the first


def test_a_panel_is_an_encoding_and_a_bar_the_mean_over_heads_and_seeds() -> None:
    figure = KINDS['attended_distance'].draw(GIVEN).figure
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in panels] == LABELS
    for axes, far in zip(panels, FAR, strict=True):
        heights = [bar.get_height() for bar in axes.patches]
        mean = far * (1 - 0.1 / 4)
        np.testing.assert_allclose(heights, [1 - mean, *[0] * 8, mean], atol=1e-12)
        assert axes.patches[-1].get_x() + axes.patches[-1].get_width() == pytest.approx(1)
        assert len(axes.lines) == 3


def test_rows_and_table_have_the_numbers() -> None:
    drawn = KINDS['attended_distance'].draw(GIVEN)
    assert len(drawn.rows) == 5 * 3 * 4 * 4 * 10
    row = next(r for r in drawn.rows if r['seed'] == 1 and r['head'] == 2 and r['from'] > 0.85)
    assert (row['layer'], row['label']) == (1, LABELS[0])
    assert row['share'] == pytest.approx(0.11) and row['mean_distance'] == pytest.approx(0.1045)
    line = drawn.markdown.splitlines()[-1]
    mean = FAR[-1] * (1 - 0.1 / 4)
    assert line == f'| {LABELS[-1]} | {0.95 * mean:.3f} | {1 - mean:.3f} | {mean:.3f} |'
    assert not drawn.claims


def test_records_of_two_tasks_are_refused() -> None:
    other = attended_records(0.1, task='lego', seed=0, run_id='x')
    name = next(iter(GIVEN.records))
    given = dataclasses.replace(GIVEN, records={**GIVEN.records, name: other})
    with pytest.raises(ValueError, match="the runs differ in 'task'"):
        KINDS['attended_distance'].draw(given)


def test_one_seed_is_drawn_without_dots() -> None:
    few = {name: r for name, r in GIVEN.records.items() if name.endswith('/0')}
    drawn = KINDS['attended_distance'].draw(dataclasses.replace(GIVEN, records=few))
    assert not any(axes.lines for axes in drawn.figure.axes) and 'one seed' in drawn.caption
