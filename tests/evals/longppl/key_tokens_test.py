"""Windows that score each token once, and key tokens by the definition, across tokenizers."""

from __future__ import annotations

import numpy as np
import pytest

from nope.evals.longppl.key_tokens import Rule, carried_over, merged, select, short_windows


@pytest.mark.parametrize('tokens', [1, 8, 9, 10, 11, 12, 30, 33])
def test_windows_score_every_token_after_the_short_context_once(tokens: int) -> None:
    rule = Rule(short=8, stride=3)
    windows = short_windows(tokens, rule)
    scored = [t for _, first, end in windows.tolist() for t in range(first, end)]
    assert scored == list(range(8, tokens))
    for begin, first, end in windows.tolist():
        assert first - begin == 8
        assert begin % 3 == 0
        assert 1 <= end - first <= 3


def test_the_windows_of_the_paper() -> None:
    """4,096 and 1,024: the first sees what is there, the last is cut to the end."""
    windows = short_windows(7000, Rule())
    assert windows.tolist() == [[0, 4096, 5120], [1024, 5120, 6144], [2048, 6144, 7000]]


def test_key_tokens_gain_by_the_long_context_and_are_predicted_well() -> None:
    full = np.array([np.nan, 1.0, 1.0, 1.9, 2.0, 0.5, 0.5])
    short = np.array([np.nan, 3.0, 3.1, 9.0, 9.0, 0.4, np.nan])
    found = select(full, short, Rule(short=1, stride=1))
    assert found.tolist() == [False, False, True, True, False, False, False]
    wider = select(full, short, Rule(short=1, stride=1, gain=1.5, ceiling=2.5))
    assert wider.tolist() == [False, True, True, True, True, False, False]


@pytest.mark.parametrize('field', ['short', 'stride', 'gain', 'ceiling'])
def test_a_rule_without_extent_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f'{field} is 0; it must be above 0'):
        Rule(**{field: 0})


def test_spans_that_touch_are_one_interval() -> None:
    spans = np.array([[3, 5], [5, 9], [11, 12], [11, 12], [14, 20]])
    assert merged(spans).tolist() == [[3, 9], [11, 12], [14, 20]]
    assert merged(np.zeros((0, 2), np.int64)).shape == (0, 2)


def test_a_token_is_carried_over_where_all_its_characters_are_key() -> None:
    intervals = np.array([[3, 9], [11, 12]])
    spans = np.array(
        [[0, 0], [0, 3], [3, 4], [4, 9], [8, 10], [9, 9], [10, 12], [11, 12], [12, 15]]
    )
    found = carried_over(spans, intervals)
    assert np.flatnonzero(found).tolist() == [2, 3, 7]
    assert not carried_over(spans, intervals[:0]).any()


def test_carrying_over_is_containment_in_some_interval() -> None:
    draw = np.random.default_rng(0)
    for _ in range(50):
        cuts = np.unique(draw.integers(0, 60, 24))
        intervals = cuts[: len(cuts) // 2 * 2].reshape(-1, 2)
        begins = np.sort(draw.integers(0, 60, 40))
        spans = np.stack([begins, begins + draw.integers(0, 6, 40)], axis=1)
        expected = [
            begin < end and any(b <= begin and end <= e for b, e in intervals)
            for begin, end in spans
        ]
        assert carried_over(spans, intervals).tolist() == expected
