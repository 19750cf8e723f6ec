"""Attention by position: what is drawn of heads with and without position encoding."""

from __future__ import annotations

import numpy as np

from experiments.figures import KINDS, FigureInput
from tests.experiments.figures.synthetic import column, measuring, shape_records


def test_each_kind_of_heads_has_means_of_its_own():
    """Heads of 1 and 9 keys are local, those of 1 and 49 without position."""
    records = shape_records(local_heads=2)
    nats = np.log([1, 9, 1, 49])[:, None] * np.ones_like(records['entropy'])
    given = {'split': measuring(records, entropy=nats)}
    options = {'curves': [{'record': 'split', 'label': 'half local'}]}
    rows = KINDS['attention_shape'].draw(FigureInput('f', given, options)).rows

    def values(measure, heads):
        return column([r for r in rows if (r['measure'], r['heads']) == (measure, heads)], 'value')

    for heads, keys in (('local', (1, 9)), ('global', (1, 49))):
        np.testing.assert_allclose(values('keys', heads), np.mean(keys))
        np.testing.assert_allclose(values('entropy', heads), np.log2(keys).mean())
    np.testing.assert_allclose(values('local', 'local'), 1)
    np.testing.assert_allclose(values('local', 'global')[-1], 1 / 4, rtol=0.01)
    assert len(values('loss', 'all')) == len(values('local', 'global'))
