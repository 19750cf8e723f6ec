from __future__ import annotations

import numpy as np
import pytest

from nope.evals import forward, lengths
from nope.model.lam import LogLength
from nope.variables import lam_of
from tests import tiny

CONFIG = tiny.model(lam=LogLength(train_length=4))
BLOCKS = tiny.tokens(5, 13)
LENGTHS = (4, 12)


def run(lengths_: tuple[int, ...], blocks: np.ndarray = BLOCKS, tail: int = 2):
    return lengths.run(
        CONFIG,
        [tiny.varied_lam(CONFIG)] * len(lengths_),
        blocks,
        lengths_,
        tail=tail,
        mesh=tiny.mesh(),
        batch_size=5,
    )


def test_every_length_ends_at_the_same_tokens() -> None:
    found = run(LENGTHS)
    for index, length in enumerate(LENGTHS):
        means = forward.means(
            CONFIG,
            tiny.varied_lam(CONFIG),
            BLOCKS[:, 12 - length :],
            mesh=tiny.mesh(),
            batch_size=5,
            entropy=False,
        )
        np.testing.assert_allclose(found['loss_window'][index], means.loss.mean(), rtol=1e-6)
        np.testing.assert_allclose(found['loss_tail'][index], means.loss[-2:].mean(), rtol=1e-6)
    multipliers = 1 + lam_of(tiny.varied_lam(CONFIG)) * np.log(3)
    np.testing.assert_allclose(found['multiplier_mean'], [1, multipliers.mean()], rtol=1e-6)
    assert found.along('length', 2).tolist() == [4, 12]
    assert found.attributes['length'] == 12


def test_the_tail_of_a_shorter_window_is_all_of_it() -> None:
    found = lengths.run(
        CONFIG,
        [tiny.varied_lam(CONFIG)] * 2,
        BLOCKS,
        LENGTHS,
        tail=8,
        mesh=tiny.mesh(),
        batch_size=5,
    )
    assert found['loss_tail'][0] == found['loss_window'][0]
    assert found['loss_tail'][1] != found['loss_window'][1]


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'lengths_': (0, 12)}, r'a length is 0; it must be in 1 \.\. 12'),
        ({'lengths_': (4, 13)}, r'a length is 13; it must be in 1 \.\. 12'),
        ({'tail': 0}, 'tail is 0; it must be at least 1'),
        ({'tail': -2}, 'tail is -2'),
        ({'blocks': np.full((2, 13), -1)}, 'ids from -1 to -1; those of the model are 0 to'),
        ({'blocks': np.full((2, 13), 10**6)}, 'ids from 1000000'),
    ],
)
def test_what_cannot_be_measured_is_named(given, message) -> None:
    with pytest.raises(ValueError, match=message):
        run(**{'lengths_': LENGTHS, **given})
