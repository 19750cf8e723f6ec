"""Bound of the weight of one key: the inequality, leads, multipliers, rows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS
from experiments.figures.kinds.weight_bound import bound, lead
from tests.experiments.figures.synthetic import INPUTS, LEAD, SLACK

GIVEN = INPUTS['weight_bound']


def test_no_weight_exceeds_the_bound_which_one_key_above_equals_meets() -> None:
    draw = np.random.default_rng(0)
    logits_RN = draw.uniform(-3, 3, (200, 17))
    logits_RN[0] = [3, *[-3] * 16]
    largest = np.exp(logits_RN.max(axis=1)) / np.exp(logits_RN).sum(axis=1)
    limit = bound(np.ptp(logits_RN, axis=1), 17)
    assert limit[0] == pytest.approx(largest[0]) == pytest.approx(np.exp(6) / (16 + np.exp(6)))
    assert (largest[1:] < limit[1:]).all()
    np.testing.assert_allclose(bound(lead(largest, 17), 17), largest)
    mean = (np.exp(logits_RN).sum(axis=1) - np.exp(logits_RN.max(axis=1))) / 16
    np.testing.assert_allclose(lead(largest, 17), logits_RN.max(axis=1) - np.log(mean))


def test_rows_have_bounds_of_the_own_range_and_of_the_base_models_times_p() -> None:
    rows = KINDS['weight_bound'].draw(GIVEN).rows
    found = [r for r in rows if r['finds'] and r['seed'] == 'seed1' and r['length_over_L'] == 4]
    base, scaled = found
    assert (base['layer'], base['head'], base['keys'], base['base_bound']) == (2, 2, 512, '')
    assert base['bound'] == pytest.approx(bound(LEAD + SLACK, 512))
    assert (
        scaled['bound'] == scaled['base_bound'] == pytest.approx(bound(1.5 * (LEAD + SLACK), 512))
    )
    for row, p in ((base, 1), (scaled, 1.5)):
        assert row['largest'] == pytest.approx(bound(p * LEAD, 512))
        assert row['kept'] == pytest.approx(row['largest'])  # the lead is the same at L
        assert row['reach_over_L'] == pytest.approx((1 + np.exp(p * (LEAD + SLACK))) / 128)


def test_a_panel_has_the_finder_and_the_median_head() -> None:
    figure = KINDS['weight_bound'].draw(GIVEN).figure
    assert [len(axes.lines) for axes in figure.axes] == [2 * 3 + 1, 2 * 4 + 1]
    measured = figure.axes[0].lines[4:6]
    keys = 128 * np.array([0.5, 1, 4, 16])
    np.testing.assert_allclose(measured[0].get_ydata(), bound(LEAD, keys))
    np.testing.assert_allclose(measured[1].get_ydata(), 1 / keys)


def test_a_base_that_is_no_other_curve_is_refused() -> None:
    for base in ('headscale', 'other'):
        curves = [GIVEN.options['curves'][0], {**GIVEN.options['curves'][1], 'base': base}]
        with pytest.raises(ValueError, match=r"base must be one of \['nope'\]"):
            KINDS['weight_bound'].required('f', {'curves': curves})


def test_a_base_that_was_asked_at_other_lengths_is_refused() -> None:
    def longer(record):
        keys = dataclasses.replace(record.measures['keys'], values=record['keys'] * 2)
        return dataclasses.replace(record, measures={**record.measures, 'keys': keys})

    records = {k: longer(r) if k.startswith('nope') else r for k, r in GIVEN.records.items()}
    with pytest.raises(ValueError, match="its base 'nope' were asked at different lengths"):
        KINDS['weight_bound'].draw(dataclasses.replace(GIVEN, records=records))
