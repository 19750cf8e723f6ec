from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from experiments.figures import KINDS, FigureInput
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import INPUTS
from tests.experiments.figures.synthetic.keys import key_records, reach_runs


def drawn(runs=None, **options):
    given = INPUTS['reach']
    return KINDS['reach'].draw(
        FigureInput('f', runs or dict(given.records), {**given.options, **options})
    )


def losses() -> list[float]:
    records = INPUTS['reach'].records
    return [float(records[f'gates_loss/seed{seed}']['loss_window'][0]) for seed in range(3)]


def test_every_training_is_a_dot_at_its_loss_and_a_line_joins_it_to_lambda():
    figure = drawn().figure
    assert [axes.get_title() for axes in figure.axes] == [f'prompts of {n} L' for n in (16, 32, 64)]
    far = figure.axes[-1].lines
    joins = [line for line in far if line.get_marker() == 'None']
    dots = [line for line in far if line.get_marker() != 'None']
    assert [line.get_ydata().tolist() for line in joins] == [
        pytest.approx([low, 100]) for low in (10, 20, 30)
    ]
    assert len(dots) == 3  # open and filled gates, and ALiBi
    np.testing.assert_allclose(dots[0].get_xdata(), losses())
    np.testing.assert_allclose(dots[0].get_ydata(), [10, 20, 30])
    np.testing.assert_allclose(dots[1].get_ydata(), [100] * 3)
    assert dots[0].get_markerfacecolor() == 'none'
    assert to_rgba(dots[1].get_color()) == to_rgba(dots[0].get_color())
    assert dots[2].get_markerfacecolor() == 'none'


def test_rows_are_trainings_as_trained_and_with_lambda_at_every_length():
    rows = drawn().rows
    assert len(rows) == 3 * 3 * 3
    last = [row for row in rows if row['label'] == 'gates' and row['length_over_L'] == 64]
    assert [(row['lambda'], row['share_of_keys']) for row in last] == [
        *((False, pytest.approx(share)) for share in (0.1, 0.2, 0.3)),
        *[(True, 1.0)] * 3,
    ]
    assert [row['loss_at_L_nats'] for row in last] == losses() * 2


def test_the_claim_speaks_of_the_method_as_trained():
    (claim,) = drawn().claims
    assert claim.id == 'keys_far' and claim.holds is False
    assert list(claim.numbers[0].by_seed) == pytest.approx([10, 20, 30])
    (claim,) = drawn(roles={}).claims
    assert claim.holds is None


def test_keys_of_every_panel_must_be_asked_for():
    runs = reach_runs(1)
    runs['gates_keys/seed0'] = key_records((1.0,) * 6, run_id='gates-0')
    with pytest.raises(ValueError, match=r"'gates_keys' was asked for keys at .* L, not at 64 L"):
        drawn(runs)


def test_trainings_of_other_seeds_are_refused():
    runs = reach_runs(2)
    del runs['gates_searched/seed1']
    with pytest.raises(ValueError, match='seed'):
        drawn(runs)


def test_keys_of_another_training_are_refused():
    runs = reach_runs(1)
    runs['gates_keys/seed0'] = synthetic.stating(runs['gates_keys/seed0'], run_id='another')
    with pytest.raises(ValueError, match="'gates_loss' and 'gates_keys' are of different runs"):
        drawn(runs)


def test_without_l_there_is_nothing_to_hold_the_keys_against():
    runs = reach_runs(1)
    runs['gates_loss/seed0'] = synthetic.stating(runs['gates_loss/seed0'], train_length=64)
    with pytest.raises(ValueError, match="'train_length'"):
        drawn(runs)
