from __future__ import annotations

import re

import numpy as np

from nope.evals.needles.variable_tracking import CHAINS, VARIABLES, hide


def test_running_the_assignments_gives_the_expected_variables() -> None:
    for seed in range(20):
        haystack, expected = hide(0.3, np.random.RandomState(seed))
        lines = re.findall(r'\nVAR (\w+) = (?:VAR )?(\w+)\.\n', haystack.text(' a.', 300))
        values: dict[str, str] = {}
        for name, source in lines:  # what is taken over was assigned before
            values[name] = source if source.isdigit() else values[source]
        assert len(values) == len(lines) == CHAINS * VARIABLES
        assert len(set(values.values())) == CHAINS
        (number,) = re.findall(r'hold (\d{5}) are$', haystack.question)
        assert expected == tuple(name for name, value in values.items() if value == number)
        assert len(expected) == VARIABLES


def test_the_asked_chain_begins_at_the_depth() -> None:
    behind, others = [], []
    for seed in range(50):
        haystack, expected = hide(0.3, np.random.RandomState(seed))
        depth = {needle.text.split()[1]: needle.depth for needle in haystack.needles}
        assert depth[expected[0]] == 0.3
        behind += [depth[name] for name in expected[1:]]
        others += [at for name, at in depth.items() if name not in expected]
    assert 0.3 <= min(behind) < 0.35 and 0.95 < max(behind) < 1
    assert min(others) < 0.05 and 0.95 < max(others) < 1
