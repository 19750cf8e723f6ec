"""Final answers: what parses, what counts as the same, accuracy by length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nope.data.tasks.answers import NUMBER, NUMBERS, WHOLE, WORD, WORDS, Form

FORMS = (NUMBER, NUMBERS, WHOLE, WORD, WORDS)


@pytest.mark.parametrize(
    'form, prediction, gold',
    [
        (NUMBER, 'The answer is 5 5 6 4 3.', 'The answer is 5 5 6 4 3.'),
        (NUMBER, 'The answer is 55643.', 'The answer is 5 5 6 4 3.'),
        (NUMBER, 'The answer is 0 7.', 'The answer is 7.'),
        (NUMBER, 'The answer is 2 .', 'The answer is 2 .'),
        (NUMBER, 'step . Thus,  The answer is 9.', 'The answer is 9.'),
        (NUMBER, 'The answer is 1. The answer is 9.', 'The answer is 9.'),
        (WORD, 'The answer is no.', 'The answer is No.'),
        (WORD, 'The answer is +1.', 'The answer is +1.'),
        (WORDS, 'The sorted list is [ b,d , e ].', 'The sorted list is [ b, d, e ].'),
        (NUMBERS, 'The sorted list is [ 26, 3 1 ].', 'The sorted list is [ 2 6, 3 1 ].'),
        (WHOLE, ' a b c ', 'a b c'),
    ],
)
def test_the_same_answer_counts(form: Form, prediction: str, gold: str) -> None:
    assert form.matches(prediction, gold)


@pytest.mark.parametrize(
    'form, prediction, gold',
    [
        (NUMBER, 'The answer is 5 5 6 4.', 'The answer is 5 5 6 4 3.'),
        (NUMBER, 'The answer is 0.', 'The answer is 1.'),
        (NUMBER, 'The answer is 1', 'The answer is 1.'),
        (NUMBER, 'The answer is - 1.', 'The answer is 1.'),
        (NUMBER, 'The answer is 1. The answer is 2.', 'The answer is 1.'),
        (NUMBER, '', 'The answer is 1.'),
        (WORD, 'The answer is -1.', 'The answer is +1.'),
        (WORD, 'The answer is .', 'The answer is +1.'),
        (WORDS, 'The sorted list is [ d, b, e ].', 'The sorted list is [ b, d, e ].'),
        (WORDS, 'The sorted list is [ b, d ].', 'The sorted list is [ b, d, e ].'),
        (WORDS, 'The sorted list is [ b, B ].', 'The sorted list is [ b, b ].'),
        (WORDS, 'The sorted list is [ b, , e ].', 'The sorted list is [ b, e ].'),
        (NUMBERS, 'The sorted list is [ 2 6, x ].', 'The sorted list is [ 2 6 ].'),
        (NUMBERS, 'The sorted list is [ 2, 6 3 1 ].', 'The sorted list is [ 2 6, 3 1 ].'),
        (WHOLE, 'a b', 'a b c'),
        (WHOLE, 'a b c c', 'a b c'),
    ],
)
def test_another_answer_does_not(form: Form, prediction: str, gold: str) -> None:
    assert not form.matches(prediction, gold)


@given(st.sampled_from(FORMS), st.text())
def test_no_prediction_is_an_error(form: Form, prediction: str) -> None:
    gold = 'The sorted list is [ 1 ]. The answer is 1.'
    assert not form.matches(prediction, gold) or form.parse(prediction) is not None


def test_what_is_no_answer_does_not_parse() -> None:
    assert WORDS.parse('The sorted list is [ b, , e ].') is None
    assert WORDS.parse('The sorted list is [  ].') is None
    assert NUMBERS.parse('The sorted list is [ 2 6, x ].') is None
    assert NUMBER.parse('The answer is - 1.') is None
    assert NUMBER.parse('The answer is 1') is None
    assert WHOLE.parse(' ') is None


def test_a_gold_target_without_an_answer_is_an_error() -> None:
    with pytest.raises(ValueError, match='gold target'):
        NUMBER.matches('The answer is 1.', '1')
