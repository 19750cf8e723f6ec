from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nope.evals.longbench.metrics import (
    METRICS,
    classification,
    code_sim,
    qa_f1,
    retrieval,
    rouge_l,
    score,
)
from tests.vectors import VECTORS

OWN = VECTORS['longbench_metric_cases']
CLASSES = tuple(OWN['classes_default'])
CASES = [
    pytest.param(name, *case[:3], case[3] if len(case) > 3 else CLASSES, id=f'{name}-{index}')
    for name in METRICS
    for index, case in enumerate(OWN[name])
]
WORDS = st.lists(st.sampled_from(['a', 'b', 'B', 'c.', '. ', '\n', '7', '`']), max_size=12)
EXAMPLES = settings(max_examples=100, deadline=None, derandomize=True)
TEXTS = st.one_of(st.text(max_size=40), WORDS.map(' '.join), WORDS.map(''.join))


@pytest.mark.parametrize(('name', 'prediction', 'truth', 'expected', 'classes'), CASES)
def test_vector(
    name: str, prediction: str, truth: str, expected: float, classes: Sequence[str]
) -> None:
    assert METRICS[name](prediction, truth, classes=classes) == pytest.approx(expected, rel=1e-6)
    assert score(name, prediction, [truth], classes) == pytest.approx(expected, rel=1e-6)


def test_every_metric_has_vectors() -> None:
    assert METRICS.keys() == OWN.keys() - {'format', 'classes_default'}


@pytest.mark.parametrize('name', METRICS)
@EXAMPLES
@given(prediction=TEXTS, truth=TEXTS, number=st.integers(0, 99))
def test_a_score_is_between_0_and_1(name: str, prediction: str, truth: str, number: int) -> None:
    if name == 'retrieval':
        truth = f'Paragraph {number}'
    found = METRICS[name](prediction, truth, classes=('a', 'ab', truth))
    assert isinstance(found, float)
    assert 0 <= found <= 1


def test_qa_f1_is_blind_to_case_punctuation_and_articles() -> None:
    assert qa_f1('The U.S. (a country)', 'us country') == 1
    assert qa_f1('theory', 'the ory') == 0


def test_rouge_l_keeps_the_words_found_in_earlier_sentences() -> None:
    assert rouge_l('b a', 'a b') == 2 * (0.25 / (1 + 1e-8))
    assert rouge_l('b a', 'a b. a') == rouge_l('b a', 'a. b') == 2 / (2 + 1e-8)


def test_rouge_l_takes_one_of_several_subsequences() -> None:
    """Of 'b a' and 'a b' it finds 'a', which the second sentence then adds to or does not."""
    assert rouge_l('a b. b', 'b a') == 2 / (2 + 1e-8)
    assert rouge_l('a b. a', 'b a') == 2 * (0.25 / (1 + 1e-8))


def test_rouge_l_gives_white_space_between_full_stops_a_word_of_its_own() -> None:
    assert rouge_l('x. ', 'y.\n') == rouge_l('b a', 'a b') == 2 * (0.25 / (1 + 1e-8))


def test_rouge_l_of_a_sentence_too_long_for_the_package_is_0() -> None:
    words = [f'w{i}' for i in range(991)]
    assert rouge_l(' '.join(words[:990]), ' '.join(words[:990])) == 2 / (2 + 1e-8)
    assert rouge_l(' '.join(words), ' '.join(words)) == 0
    assert rouge_l(' '.join(words) + '. x', 'x') == 0
    assert rouge_l(' '.join(words[:990]) + '. x', 'x') > 0


def test_classification_steps_over_the_class_behind_a_removed_one() -> None:
    assert classification('abc', 'abc', classes=('a', 'abc')) == 1
    assert classification('abc', 'abc', classes=('a', 'ab', 'abc')) == 1 / 2
    assert classification('abc', 'abc', classes=('abc', 'a', 'ab')) == 1 / 2
    assert classification('abc', 'abc', classes=('a', 'abc', 'ab')) == 1


def test_classification_without_classes_is_refused() -> None:
    with pytest.raises(ValueError, match='none were given'):
        classification('City', 'City')


def test_retrieval_compares_numbers_as_they_are_written() -> None:
    assert retrieval('Paragraph 03', 'Paragraph 3') == 0
    assert retrieval('3 13 3 4', 'the text is Paragraph 3') == 1 / 2


def test_retrieval_needs_a_paragraph() -> None:
    with pytest.raises(ValueError, match="truth is '3'"):
        retrieval('Paragraph 3', '3')


@pytest.mark.parametrize(
    ('prediction', 'line'),
    [
        ('\n\nx = 1\ny', 'x = 1'),
        ('# one\n// two\n```\nx = 1', 'x = 1'),
        ('x = 1 # one\ny = 2', 'y = 2'),
        (' \nx = 1', ' '),
        ('# one\n', ''),
    ],
)
def test_code_sim_reads_the_first_line_of_code(prediction: str, line: str) -> None:
    assert code_sim(prediction, line or 'x = 1') == (1 if line else 0)


def test_code_sim_ignores_frequent_characters_of_a_long_truth() -> None:
    """From 200 characters on, difflib starts no match at one that makes up over 1 %."""
    assert code_sim('ab' * 99, 'ab' * 99) == 1
    assert code_sim('x' + 'ab' * 100, 'y' + 'ab' * 100) == 0


def test_the_best_truth_counts() -> None:
    assert score('qa_f1', 'Paris', ['Lyon', 'Paris', 'Paris, France']) == 1
    assert score('qa_f1', 'Paris', ['Lyon']) == 0


def test_the_first_line_alone_is_scored_where_asked() -> None:
    prediction = '\nParis\nQuestion: where is Lyon?'
    assert score('qa_f1', prediction, ['Paris'], first_line_only=True) == 1
    assert score('qa_f1', prediction, ['Paris']) < 1
