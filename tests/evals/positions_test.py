from __future__ import annotations

import pathlib

import numpy as np
import pytest

from nope import records
from nope.evals import forward, positions
from nope.model.lam import LogLength
from nope.variables import lam_of
from tests import tiny

T = 12
CONFIG = tiny.model(lam=LogLength(train_length=T // 2))
BLOCKS = tiny.tokens(5, T + 1)


def test_records_hold_what_the_pass_measured(tmp_path: pathlib.Path) -> None:
    variables = tiny.varied_lam(CONFIG)
    found = positions.run(CONFIG, variables, BLOCKS, mesh=tiny.mesh(), batch_size=5)
    means = forward.means(CONFIG, variables, BLOCKS, mesh=tiny.mesh(), batch_size=5, entropy=True)
    assert means.entropy is not None
    np.testing.assert_array_equal(found['loss'], means.loss)
    np.testing.assert_array_equal(found['loss_std'], means.loss_std)
    np.testing.assert_array_equal(found['entropy'], means.entropy.astype(np.float32))
    np.testing.assert_allclose(found['multiplier'], 1 + lam_of(variables) * np.log(2), rtol=1e-6)
    assert found.along('position', T).tolist() == list(range(1, T + 1))
    assert found.attributes == {
        'evaluation': 'positions',
        'length': T,
        'windows': 5,
        'n_layers': 2,
        'n_heads': 4,
    }
    records.save(found, tmp_path)
    np.testing.assert_array_equal(records.load(tmp_path)['entropy'], found['entropy'])


@pytest.mark.slow
def test_a_window_just_over_a_power_of_two() -> None:
    """65,537 positions: the first thousand as in a window of theirs, entropy of i tokens at most
    log i."""
    config = tiny.model(
        layers=1, width=16, heads=2, kv_heads=1, mlp_width=32, head_dim=8, attention='chunked'
    )
    length, short = 2**16 + 1, 1000
    blocks, variables = tiny.tokens(1, length + 1), tiny.variables(config)

    def measured(size: int) -> records.Records:
        cut = blocks[:, : size + 1]
        return positions.run(config, variables, cut, mesh=tiny.mesh(), batch_size=1)

    found, expected = measured(length), measured(short)
    assert found['loss'].shape == (length,) and np.isfinite(found['loss']).all()
    np.testing.assert_allclose(found['loss'][:short], expected['loss'], rtol=1e-5)
    most = np.log(np.arange(1, length + 1)) + 1e-4
    assert (found['entropy'] <= most).all()
