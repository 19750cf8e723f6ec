"""The numbers behind the figures of entropy are those of the records."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS, write
from experiments.figures.claims.decided import Decided
from tests.experiments.figures.synthetic import INPUTS, column, measuring, position_runs, rows_of


def test_the_entropy_of_a_row_is_the_mean_of_heads_in_bits():
    given = INPUTS['entropy_loss']
    rows = KINDS['entropy_loss'].draw(given).rows
    for name, records in given.records.items():
        mine = [row for row in rows if row['record'] == name]
        np.testing.assert_array_equal(column(mine, 'position'), np.arange(1, 257))
        entropy = records['entropy'].astype(np.float64).mean(axis=(0, 1)) / np.log(2)
        np.testing.assert_allclose(column(mine, 'entropy_bits'), entropy, rtol=1e-12)


@pytest.mark.parametrize(('kind', 'layers'), [('heads', [0, 3]), ('head_entropy', [0, 1, 2, 3])])
def test_head_rows_hold_every_head(kind, layers, tmp_path):
    given = INPUTS[kind]
    write(KINDS[kind].draw(given), tmp_path)
    rows = [r for r in rows_of(tmp_path / f'{given.name}.csv') if r['record'] == 'headscale']
    assert sorted({int(r['layer']) for r in rows}) == layers
    assert {int(r['head']) for r in rows} == {0, 1, 2, 3}
    bits = given.records['headscale']['entropy'].astype(np.float64) / np.log(2)
    expected = [bits[int(r['layer']), int(r['head']), int(r['position']) - 1] for r in rows]
    np.testing.assert_allclose(column(rows, 'entropy_bits'), expected, rtol=1e-12)
    assert int(rows[-1]['position']) == 256


def test_multiplier_rows_are_the_records_and_the_correlation_is_found(tmp_path):
    given = INPUTS['multiplier_entropy']
    output = KINDS['multiplier_entropy'].draw(given)
    write(output, tmp_path)
    rows = rows_of(tmp_path / 'fig5.csv')
    records = given.records['headscale']
    np.testing.assert_array_equal(column(rows, 'multiplier'), records['multiplier'].ravel())
    bits = records['entropy'][..., -1].astype(np.float64).ravel() / np.log(2)
    np.testing.assert_allclose(column(rows, 'entropy_bits'), bits, rtol=1e-12)
    (claim,) = output.claims
    assert claim.number == 9
    assert claim.holds
    assert claim.measured['as_trained']['layers_negative'] == 4
    for which in ('as_trained', 'under_the_multipliers'):
        assert claim.measured[which]['r_within_layers'] == pytest.approx(-1, abs=1e-3)


def test_a_positive_correlation_does_not_hold_and_an_undefined_one_is_none():
    records = position_runs()['headscale']['multiplier']
    assert correlation_claim(headscale=('multiplier', 3 - records)).holds is False
    found = correlation_claim(headscale=('multiplier', np.ones_like(records)))
    assert found.holds is None and found.verdict == 'not measured'


def test_multipliers_that_lower_their_own_entropy_alone_do_not_hold():
    # Of four heads whose multipliers fall evenly.
    entropy = 3 + 0.1 * np.array([1.0, -1.0, -1.0, 1.0])[:, None] * np.ones((4, 1, 256))
    claim = correlation_claim(nope=('entropy', entropy.astype(np.float32)))
    assert claim.measured['under_the_multipliers']['r_within_layers'] < -0.99
    assert claim.measured['as_trained']['r_within_layers'] == pytest.approx(0, abs=1e-3)
    assert claim.holds is False


def test_a_control_with_multipliers_is_refused():
    with pytest.raises(ValueError, match=r"control 'nope' must be the same model, .*1\.1 to 1\.1"):
        correlation_claim(nope=('multiplier', np.full((4, 4), 1.1)))


def correlation_claim(**changed: tuple[str, np.ndarray]) -> Decided:
    """The claim of Figure 5 where a measure of a record is another."""
    runs = position_runs()
    for name, (measure, values) in changed.items():
        runs[name] = measuring(runs[name], **{measure: values})
    given = dataclasses.replace(INPUTS['multiplier_entropy'], records=runs)
    return KINDS['multiplier_entropy'].draw(given).claims[0]
