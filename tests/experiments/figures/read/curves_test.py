"""Smoothing is the paper's, and bends are found where they were put."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures.read import curves, position_curve
from tests.experiments.figures import synthetic


@pytest.mark.parametrize(('size', 'half'), [(300, 50), (17, 3), (5, 50)])
def test_smoothing_is_the_mean_over_the_window_cut_at_the_edges(size, half):
    x = np.random.default_rng(0).normal(size=size)
    expected = [np.mean(x[max(0, k - half) : min(size, k + half + 1)]) for k in range(size)]
    np.testing.assert_allclose(curves.smooth(x, half), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(('train_length', 'half'), [(2048, 50), (64, 2), (16, 1), (8192, 200)])
def test_half_width_is_the_same_share_of_the_training_length(train_length, half):
    assert curves.half_width(train_length) == half


def test_a_short_excursion_is_a_crossing_but_no_bend():
    positions = np.arange(1, 101)
    excess = np.zeros(100)
    excess[39:42] = 1.0
    excess[69:] = 1.0
    assert curves.first_above(excess, positions, 0.5, 10) == 40
    assert curves.first_above(excess, positions, 0.5, 10, hold=8) == 70
    assert curves.first_above(excess, positions, 0.5, 10, hold=31) == 70
    assert curves.first_above(excess, positions, 0.5, 10, hold=32) is None
    assert curves.first_above(excess, positions, 0.5, 100) is None


@pytest.mark.parametrize('bend', [70.0, 100.0, 200.0])
def test_the_loss_bend_is_where_the_kink_reaches_the_threshold(bend):
    records = synthetic.positions_records(loss_bend=bend, loss_slope=1.0)
    found = position_curve.read('a', records).loss_bend(0.1)
    # One nat per doubling: 0.1 nats above the floor at bend * 2 ** 0.1.
    assert found == pytest.approx(bend * 2**0.1 / 64, abs=2 / 64)


@pytest.mark.parametrize('bend', [70.0, 100.0, 200.0])
def test_the_entropy_bend_is_where_the_line_against_ln_i_is_left(bend):
    records = synthetic.positions_records(entropy_bend=bend, entropy_slope=1.5)
    curve = position_curve.read('a', records)
    assert curve.entropy_bend(0.1) == pytest.approx(bend * 2 ** (0.1 / 1.5) / 64, abs=1.5 / 64)
    assert curve.line_r2() == pytest.approx(1, abs=1e-6)


def test_no_bend_within_the_positions_is_none():
    curve = position_curve.read('a', synthetic.positions_records(loss_bend=1e9, entropy_bend=1e9))
    assert curve.loss_bend() is None
    assert curve.entropy_bend() is None


def test_noise_moves_the_first_crossing_but_not_the_bend():
    records = synthetic.positions_records(loss_bend=100, noise=0.08)
    curve = position_curve.read('a', records)
    first = curve.loss_bend(0.05, sustained=False)
    assert first is not None and first < 1
    assert curve.loss_bend(0.1) == pytest.approx(100 * 2**0.1 / 64, abs=6 / 64)


def test_noise_is_the_standard_error_of_a_smoothed_loss_inside_l():
    curve = position_curve.read('a', synthetic.positions_records(windows=64))
    # Five positions of every window, each with a deviation of 2.3 nats.
    assert curve.noise() == pytest.approx(2.3 / (5 * 64) ** 0.5)


def test_entropy_is_the_mean_over_layers_and_heads_in_bits():
    records = synthetic.positions_records(n_layers=3, n_heads=8)
    curve = position_curve.read('a', records)
    expected = records['entropy'].astype(np.float64).mean(axis=(0, 1)) / np.log(2)
    np.testing.assert_allclose(curve.entropy_bits, expected, rtol=1e-12)


def test_a_curve_shorter_than_the_training_length_is_refused():
    with pytest.raises(ValueError, match='shorter than the training length 64'):
        position_curve.read('a', synthetic.positions_records(length=32))


def test_thinning_keeps_the_last_position():
    assert curves.thin(256, 64)[-1] == 255
    assert len(curves.thin(256, 64)) == 64
    assert curves.thin(100, 64).tolist() == list(range(100))
    assert len(curves.thin(8193, 64)) in (64, 65)
    assert curves.thin(8193, 64)[-1] == 8192


def test_correlation_is_undefined_without_variation():
    assert curves.correlation(np.ones(5), np.arange(5.0)) is None
    assert curves.correlation(np.arange(5.0), -np.arange(5.0)) == pytest.approx(-1)


def test_a_training_length_of_one_token_has_a_level_line() -> None:
    entropy = np.array([1.0, 3.0, 4.0])
    excess, r2 = curves.entropy_excess(entropy, np.arange(1, 4), 1)
    np.testing.assert_allclose(excess, [0.0, 2.0, 3.0])
    assert r2 == 1.0
