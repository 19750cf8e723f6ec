from __future__ import annotations

import pathlib

import numpy as np

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
