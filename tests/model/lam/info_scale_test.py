"""Lambda of InfoScale."""

from __future__ import annotations

import numpy as np
import pytest

from nope.model import lam
from nope.model.lam.info_scale import InfoScale
from nope.runtime.errors import FieldError
from tests.model.lam.multipliers import by_length


def test_the_values_are_the_paper_s() -> None:
    lengths = [1024, 2048, 4096, 8192, 16384]
    found = by_length(InfoScale(2048, 64), InfoScale.published, lengths)
    entropy = 1 - np.maximum(lengths, 2048.0) ** (-2 / 64)
    np.testing.assert_allclose(found, np.sqrt(entropy / entropy[0]), rtol=1e-6)
    np.testing.assert_allclose(found, [1, 1, 1.04, 1.08, 1.11], atol=5e-3)


def test_the_coefficient_is_an_exponent() -> None:
    one, two, minus = (by_length(InfoScale(64, 16), r, [64, 128, 1000]) for r in (1.0, 2.0, -1.0))
    np.testing.assert_allclose(two, one**2, rtol=1e-6)
    np.testing.assert_allclose(minus, 1 / one, rtol=1e-6)


def test_the_head_dim_is_the_model_s() -> None:
    made = lam.from_section('info_scale', 'form', train_length=64, head_dim=16)
    assert made == InfoScale(64, 16)


@pytest.mark.parametrize(
    ('length', 'head_dim', 'field'), [(1, 16, 'train_length'), (64, 0, 'head_dim')]
)
def test_sizes_for_which_it_is_not_defined_are_refused(
    length: int, head_dim: int, field: str
) -> None:
    with pytest.raises(FieldError, match=rf'^{field} is .*at least'):
        InfoScale(length, head_dim)
