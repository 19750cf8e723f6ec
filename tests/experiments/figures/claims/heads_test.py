"""Claims about single heads hold where heads lie apart and low layers near the bound."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures.claims import heads
from experiments.figures.claims.decide import decide
from tests.experiments.figures.synthetic import measuring, positions_records

BOTH = (1.0, 5.9)


@pytest.mark.parametrize(
    ('rows', 'holds'),
    [([BOTH], True), ([(3.0, 5.9)], False), ([(1.0, 3.0)], False), ([(3.0, 5.9), BOTH], False)],
)
def test_in_every_row_heads_lie_apart_at_l(rows, holds):
    """Two heads of different layers by their bits of 6; all others have 3, and all elsewhere."""
    records = positions_records()
    labelled = {}
    for label, ends in zip('ab', rows, strict=False):
        bits = np.full_like(records['entropy'], 3)
        bits[0, 0, 63], bits[3, 3, 63] = ends
        labelled[label] = measuring(records, entropy=bits * np.log(2))
    (claim,) = decide(heads.APART, labelled)
    assert claim.holds is holds


@pytest.mark.parametrize(
    ('shares', 'holds'),
    [((0.95, 0.5, 0.5), True), ((0.91, 0.95, 0.95), False), ((0.8, 0.5, 0.5), False)],
)
def test_the_lowest_layers_are_near_the_bound_and_nearer_than_the_others(shares, holds):
    (claim,) = decide(heads.LAYERS, np.array(shares))
    assert claim.holds is holds
