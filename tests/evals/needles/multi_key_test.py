from __future__ import annotations

import re

import numpy as np

from nope.evals.needles.multi_key import KEYS, hide


def test_the_name_that_is_asked_for_has_the_expected_key() -> None:
    for seed in range(20):
        haystack, expected = hide(0.4, np.random.RandomState(seed))
        pairs = dict(
            re.findall(r'\nThe pass key of (\w+) is (\d{5})\.\n', haystack.text(' a.', 30))
        )
        assert len(pairs) == len(set(pairs.values())) == KEYS
        (name,) = re.findall(r'\nThe pass key of (\w+) is$', haystack.question)
        assert expected == (pairs[name],)


def test_it_lies_at_the_depth_and_the_others_anywhere() -> None:
    others = []
    for seed in range(50):
        haystack, (number,) = hide(0.4, np.random.RandomState(seed))
        front = haystack.text(' a.', 100).split(number)[0]
        assert front.count(' a.') == 40
        others += [needle.depth for needle in haystack.needles[1:]]
    assert min(others) < 0.05 and max(others) > 0.95
