"""NoLiMa: where needles stand, who is asked for, and the scores that come of the answers."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import pytest

from nope.evals.answers import Sample
from nope.evals.nolima import NolimaPlan, run
from nope.evals.nolima.evaluation import base_score, effective_length
from nope.evals.nolima.plan import DEPTHS, Haystack, contains
from nope.evals.samples import SampleLog
from tests.evals.nolima.files import ENTRIES, NAMES, book, write
from tests.evals.writers import BYTES, Writer

ASKED = {  # pair -> of what the needle and the question are
    '0401Inv_T1_onehop': ('the tower', 'Who has been to Paris?'),
    '0401Inv_T2_onehop': ('the gate', 'Who has been to Berlin?'),
    '0401Inv_T1_twohop': ('the tower', 'Who has been to France?'),
    '0401Inv_T2_twohop': ('the gate', 'Who has been to Germany?'),
    '0500_T1_onehop': ('poodle', 'Which animal?'),
}
PAIRS = [*ASKED]


def name(prompt: str) -> str:
    """Who lives somewhere; nothing about animals."""
    found = re.search(r'lives (\w+)\.', prompt)
    return f'It is {found[1]}, I think.' if found else 'a Poodle'


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    write(tmp_path / 'nolima')
    return tmp_path / 'nolima'


def test_scores_are_by_pair_length_and_depth(folder: pathlib.Path, log: SampleLog) -> None:
    writer = Writer(name)
    found = run(writer, NolimaPlan(BYTES, folder, (250, 500)), log=log, bos=False)
    assert found.coordinates['pair'].tolist() == PAIRS
    assert found['score'].tolist() == [[100, 100, 100, 100, 0]] * 2  # 'Poodle' is no 'poodle'
    assert found['average'].tolist() == [80, 80]
    assert found['depths'].shape == (2, 26) and np.all(found['depths'] == 80)
    assert found.attributes['base_score'] == 80
    assert found.attributes['effective_length'] == 500
    assert len(writer.prompts) == 2 * 2 * 5 * 26 == len(log)
    assert {options.new_tokens for _, options in writer.calls} == {192}


def test_needles_and_questions_are_those_of_a_test(folder: pathlib.Path) -> None:
    part = NolimaPlan(BYTES, folder, (300,)).part(300, 1)
    assert part.task == 'rand_book_2' and part.key(3) == 'rand_book_2/300/3'
    for number, pair in enumerate(PAIRS):
        samples = part.samples[number * 26 : (number + 1) * 26]
        # The published code seeds NumPy's global stream for each test: 42, the id and the book.
        np.random.seed(42 + int(pair[:4]) + 1)
        drawn = [(str(np.random.choice(NAMES)),) for _ in samples]
        for sample, who in zip(samples, drawn, strict=True):
            begin, _, end = sample.text.partition('\n\nQuestion: ')
            assert begin.startswith('Read:\n\n')
            assert end.endswith('?\n\n Return only the answer.')
            place, asked = ASKED[pair]
            if place == 'poodle':
                assert sample.answers == ('dog', 'poodle') and ' A poodle was seen.\n' in begin
            else:
                assert sample.answers == who
                assert f' Next to {place} there lives {who[0]}.\n' in begin
            assert end.startswith(asked)
            assert sample.tokens == len(sample.text)


def test_a_needle_stands_behind_the_first_line_end_that_is_deep_enough() -> None:
    text = book(60, 'cart')
    haystack = Haystack(text, BYTES, 'book')
    ends = [0, *(match.start() for match in re.finditer('\n', text))]
    for length in (100, 300):
        for depth in map(float, DEPTHS):
            placed = haystack.place('NEEDLE', length, depth)
            place = next(end for end in ends if end / (length + 1) >= depth)
            begin = place - round(length * depth)
            before = text[begin : place + 1]
            before = before[: before.rfind('\n')] if '\n' in before else ''
            assert placed == f'{before} NEEDLE\n{text[place + 1 : begin + length]}'
            assert len(placed) - len(' NEEDLE\n') in (length - 1, length)


def test_a_book_that_is_too_short_is_named(folder: pathlib.Path) -> None:
    NolimaPlan(BYTES, folder, (1000,)).check()
    with pytest.raises(ValueError, match=r'rand_book_1.txt has \d+ tokens, .* a length of 3000'):
        NolimaPlan(BYTES, folder, (250, 3000)).check()
    with pytest.raises(ValueError, match='the last line end at 0; it is too short'):
        Haystack('x' * 100, BYTES, 'book').place('NEEDLE', 100, 1.0)


def test_the_base_is_the_best_of_three_short_lengths_for_each_pair() -> None:
    lengths = (250, 500, 1000, 2000, 4000)
    score = np.array([[10.0, 80], [40, 60], [20, 100], [100, 100], [0, 0]])
    assert base_score(lengths, score) == 70  # of 40 and 100
    assert base_score((2000, 4000), score[3:]) is None
    average = np.array([45.0, 50, 60, 59.6, 59.4])
    assert effective_length(lengths, average, 70) == 2000  # above 59.5, whatever shorter ones have
    assert effective_length(lengths, average, 100) == 0
    assert effective_length(lengths, average, None) == 0


@pytest.mark.parametrize(
    ('prediction', 'score'), [('Ann', 1.0), ('Anna said', 1.0), ('ann', 0.0), ('', 0.0)]
)
def test_an_answer_counts_where_it_is_contained_as_spelled(prediction: str, score: float) -> None:
    assert contains(prediction, Sample('', ('Ann',), 0)) == score


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'distractors': {}}, 'has distractors, which are not placed here'),
        ({'task_template': '{haystack}'}, "task_template is '{haystack}'; it has"),
        ({'character_set': 'Ann'}, "character_set is 'Ann'; it must be a list of texts"),
        ({'tests': {'T1': {}}}, "KeyError 'input_args'; it must be a list of {id"),
        ({'id': 'x'}, 'invalid literal'),
        ({'questions': {'direct': 'Who?'}, 'tests': {}}, 'there is no question in it'),
    ],
)
def test_a_needle_set_of_something_else_is_named(
    tmp_path: pathlib.Path, change: dict[str, Any], message: str
) -> None:
    write(tmp_path, [{**ENTRIES[0], **change}])
    with pytest.raises(ValueError, match=message):
        NolimaPlan(BYTES, tmp_path, (250,))


def test_missing_files_are_asked_for_with_their_layout(folder: pathlib.Path) -> None:
    (folder / 'needlesets/needle_set.json').unlink()
    with pytest.raises(FileNotFoundError, match=r'needle_set.json is missing; it must be a list'):
        NolimaPlan(BYTES, folder, (250,))
    with pytest.raises(FileNotFoundError, match=r'has no books; it must hold text files'):
        NolimaPlan(BYTES, folder / 'haystack', (250,))
