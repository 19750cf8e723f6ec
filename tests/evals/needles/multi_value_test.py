from __future__ import annotations

import re

import numpy as np

from nope.evals.needles.multi_value import VALUES, hide


def test_all_keys_of_the_name_are_expected_in_the_order_of_the_text() -> None:
    for seed in range(20):
        haystack, expected = hide(0.4, np.random.RandomState(seed))
        pairs = re.findall(r'\nOne pass key of (\w+) is (\d{5})\.\n', haystack.text(' a.', 200))
        assert expected == tuple(number for _, number in pairs)
        assert len(set(expected)) == VALUES
        assert {name for name, _ in pairs} == set(re.findall(r' of (\w+) are$', haystack.question))


def test_the_first_lies_at_the_depth_and_the_others_behind() -> None:
    depths = [needle.depth for s in range(50) for needle in hide(0.4, _draw(s)).haystack.needles]
    first, others = depths[::VALUES], [d for i, d in enumerate(depths) if i % VALUES]
    assert set(first) == {0.4}
    assert 0.4 <= min(others) < 0.45 and 0.95 < max(others) < 1


def _draw(seed: int) -> np.random.RandomState:
    return np.random.RandomState(seed)
