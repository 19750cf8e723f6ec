from __future__ import annotations

import pathlib

import numpy as np

from nope import records
from nope.evals import attention_shape, positions
from nope.positions import Alibi, Split
from tests import tiny

T, SPAN = 12, 4
CONFIG = tiny.model(position=Split(Alibi()))
BLOCKS = tiny.tokens(5, T + 1)


def test_records_hold_the_means_of_all_windows(tmp_path: pathlib.Path) -> None:
    """Loss and entropy as the evaluation by position has them; windows in uneven batches."""
    variables = tiny.varied_lam(CONFIG)
    found = attention_shape.run(
        CONFIG, variables, BLOCKS, span=SPAN, mesh=tiny.mesh(), batch_size=2
    )
    plain = positions.run(CONFIG, variables, BLOCKS, mesh=tiny.mesh(), batch_size=5)
    for name in ('loss', 'entropy'):
        np.testing.assert_allclose(found[name], plain[name], rtol=1e-5, atol=1e-6)
    assert found['first'].shape == found['norm'].shape == (2, 4, T)
    np.testing.assert_allclose(found['first'][..., 0], 1.0, rtol=1e-5)
    norm = found['norm'][..., 0].reshape(2, 2, 2)  # of the one value that a group of heads shares
    np.testing.assert_allclose(norm[..., 0], norm[..., 1], rtol=1e-5)
    assert np.all(norm[:, 0] != norm[:, 1])
    np.testing.assert_allclose(found['local'][..., :SPAN], 1.0, rtol=1e-5)
    assert np.all(found['local'][..., SPAN:] < 1)
    np.testing.assert_array_equal(found['global'], [[0, 0, 1, 1]] * 2)
    assert found.attributes == {
        'evaluation': 'attention_shape',
        'length': T,
        'span': SPAN,
        'windows': 5,
        'n_layers': 2,
        'n_heads': 4,
    }
    records.save(found, tmp_path)
    np.testing.assert_array_equal(records.load(tmp_path)['local'], found['local'])
