from __future__ import annotations

import pytest

from nope.evals.ruler import metrics


@pytest.mark.parametrize(
    ('prediction', 'answers', 'every', 'any_'),
    [
        ('1234567', ['1234567'], 1.0, 1.0),
        ('they are ABC and def', ['abc', 'DEF', 'ghi', 'jkl'], 0.5, 1.0),
        ('', ['abc'], 0.0, 0.0),
        ('12345678', ['2345'], 1.0, 1.0),
        ('the Normans came', ['normans', 'Vikings'], 0.5, 1.0),
    ],
)
def test_answers_count_where_they_are_contained(
    prediction: str, answers: list[str], every: float, any_: float
) -> None:
    assert metrics.METRICS['all'](prediction, answers) == every
    assert metrics.METRICS['part'](prediction, answers) == any_


def test_control_characters_part_words() -> None:
    assert metrics.cleaned(' \x00a\tb\x1fc \n') == 'a\nb\nc'


def test_a_score_is_a_percentage_of_two_decimals() -> None:
    assert metrics.mean([1.0, 0.5, 0.5]) == 66.67
