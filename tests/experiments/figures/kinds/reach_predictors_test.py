from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from experiments.figures import KINDS, FigureInput
from experiments.figures.kinds import reach_predictors
from tests.experiments.figures.synthetic import INPUTS
from tests.experiments.figures.synthetic.keys import PREDICTOR_POINTS, key_records, predictor_runs


def drawn(runs=None, **options):
    given = INPUTS['reach_predictors']
    return KINDS['reach_predictors'].draw(
        FigureInput('f', runs or dict(given.records), {**given.options, **options})
    )


def rows_of(rows, candidate):
    return [row for row in rows if row['candidate'] == candidate]


def test_a_candidate_is_measured_at_the_head_with_the_most_weight_on_the_key():
    rows = rows_of(drawn().rows, 'margin at L (nats)')
    assert len(rows) == 2 * 6
    for row in rows:
        seed = int(row['seed'].removeprefix('seed'))
        assert (row['layer'], row['head']) == (2, seed % 4)
        assert row['value'] == pytest.approx(2 + 0.1 * (seed if seed % 2 == 0 else -seed))
        assert row['share_of_keys'] == pytest.approx((2 + 0.1 * seed) / 3)
        assert row['part'] == ('held out' if seed % 2 else 'chosen on')


def test_the_halves_are_correlated_apart():
    """Margins rise with the reach over the seeds that choose, and fall over the others."""
    output = drawn()
    found = rows_of(output.rows, 'rank correlation, margin at L (nats)')
    assert [(row['part'], row['value']) for row in found] == [
        ('chosen on', pytest.approx(1.0)),
        ('held out', pytest.approx(-1.0)),
    ]
    assert '| margin at L (nats) | 1.00 | -1.00 |' in output.markdown
    level = rows_of(output.rows, 'rank correlation, spread of the margin at L (nats)')
    assert [row['value'] for row in level] == ['', '']  # all are equal
    assert 'The best on the trainings that choose: margin' in output.caption


def test_ranks_are_those_within_a_method():
    """A method whose values all lie higher changes nothing; of one method it is Spearman's."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(2, 9))
    one = reach_predictors._within([(x, y)])
    assert one == pytest.approx(stats.spearmanr(x, y).statistic)
    both = reach_predictors._within([(x, y), (x + 100, y - 50)])
    assert both == pytest.approx(one)
    level = np.ones(9)
    assert reach_predictors._within([(x, y), (x, level), (level, y)]) == pytest.approx(one)
    assert reach_predictors._within([(x, level)]) is None


def test_panels_show_every_training():
    figure = drawn().figure
    assert len(figure.axes) == len(reach_predictors.CANDIDATES)
    for axes in figure.axes:
        assert sum(len(line.get_xdata()) for line in axes.lines) == 2 * 6


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'points': [PREDICTOR_POINTS[0]] * 2}, 'labels of points must differ'),
        ({'points': [{'label': 'a', 'keys': 'b'}]}, "points must give 'attention'"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        drawn(**options)


def test_keys_of_other_lengths_are_refused():
    runs = predictor_runs(4)
    for seed in range(4):
        runs[f'gates_far/seed{seed}'] = key_records((1.0, 0.5), seed, multiples=(1, 64))
    with pytest.raises(ValueError, match=r"'gates_far' of 16, 32, 64 L; they are of"):
        drawn(runs)


def test_halves_need_four_trainings():
    with pytest.raises(ValueError, match=r"'gates' has 3 trainings; two halves of them need 4"):
        drawn(predictor_runs(3))
    known = {name: {} for name in predictor_runs(3)}  # before any training
    with pytest.raises(ValueError, match=r"'gates' has 3 trainings"):
        KINDS['reach_predictors'].check_known('f', {'points': PREDICTOR_POINTS}, known)


def test_records_without_margins_are_refused():
    runs = predictor_runs(4)
    some = runs['gates_look/seed0']
    kept = {name: m for name, m in some.measures.items() if name != 'margin'}
    runs['gates_look/seed0'] = dataclasses.replace(some, measures=kept)
    with pytest.raises(ValueError, match='margin'):
        drawn(runs)
