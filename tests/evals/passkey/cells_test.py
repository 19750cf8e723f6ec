"""Every question is asked once, in the plan's order, however often the evaluation is killed."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np
import pytest

from nope.evals.passkey import cells, keys
from nope.evals.passkey.cells import answer_missing, keep_fitting, questions, tabulate
from nope.evals.passkey.keys import PasskeyQuestion
from nope.evals.samples import SampleLog


def test_questions_are_the_plan_in_its_order() -> None:
    assert questions(320, 7, 10) == keys.plan(320, 7)


def test_fewer_tests_are_the_first_of_each_cell() -> None:
    all_ten = questions(320, 42, 10)
    assert questions(320, 42, 3) == tuple(q for q in all_ten if q.test < 3)


def test_a_length_at_which_one_question_does_not_fit_is_left_out() -> None:
    asked = questions(320, 42, 2)
    kept = keep_fitting(asked, lambda q: q.name != '160/0.5/1' and q.length > 40, 320)
    assert kept == tuple(q for q in asked if q.length > 40 and q.length != 160)


def test_no_length_that_fits_names_the_field() -> None:
    with pytest.raises(ValueError, match='max_length is 320'):
        keep_fitting(questions(320, 42, 1), lambda q: False, 320)


class Answers:
    """Rows of right answers at depths below a half, and what was asked."""

    def __init__(self, fail_after: int = 10**9) -> None:
        self.chunks: list[list[PasskeyQuestion]] = []
        self.left = fail_after

    def __call__(self, chunk: Sequence[PasskeyQuestion]) -> list[dict]:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.chunks.append(list(chunk))
        return [{**q.place, 'correct': q.depth < 0.5, 'tokens': q.length - q.test} for q in chunk]


def test_chunks_hold_one_length_and_a_bounded_number_of_tokens(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, 'CHUNK_TOKENS', 1000)
    asked, answers, seen = questions(320, 42, 2), Answers(), []
    answer_missing(asked, SampleLog(tmp_path / 'log'), answers, lambda x: seen.append(len(x)) or x)
    assert [q for chunk in answers.chunks for q in chunk] == list(asked)
    assert seen == [len(answers.chunks)]
    for chunk in answers.chunks:
        assert len({q.length for q in chunk}) == 1
        assert len(chunk) <= max(1000 // chunk[0].length, 1)
    assert len(answers.chunks[0]) == 3
    monkeypatch.setattr(cells, 'CHUNK_TOKENS', 100)
    longest = Answers()
    answer_missing(asked[:3], SampleLog(tmp_path / 'other'), longest, iter)
    assert [len(chunk) for chunk in longest.chunks] == [1, 1, 1]


def test_what_a_killed_run_finished_is_not_asked_again(tmp_path: pathlib.Path) -> None:
    asked = questions(320, 42, 2)
    killed, resumed, idle = Answers(fail_after=5), Answers(), Answers()
    with pytest.raises(KeyboardInterrupt):
        answer_missing(asked, SampleLog(tmp_path / 'log'), killed, iter)
    answer_missing(asked, SampleLog(tmp_path / 'log'), resumed, iter)
    parts = killed.chunks + resumed.chunks
    assert len(killed.chunks) == 5
    assert [q for chunk in parts for q in chunk] == list(asked)
    log = SampleLog(tmp_path / 'log')
    answer_missing(asked, log, idle, iter)
    assert idle.chunks == []
    assert all(q.name in log for q in asked)


def test_cells_are_means_with_lengths_ascending(tmp_path: pathlib.Path) -> None:
    asked = keep_fitting(questions(320, 42, 2), lambda q: q.length > 100, 320)
    log = SampleLog(tmp_path / 'log')
    answer_missing(asked, log, Answers(), iter)
    measures, coordinates = tabulate(asked, log)
    assert coordinates['length'].tolist() == list(range(120, 321, 20))
    np.testing.assert_array_equal(coordinates['depth'], np.arange(10) / 10)
    expected = np.repeat([[1.0] * 5 + [0.0] * 5], 11, axis=0)
    np.testing.assert_array_equal(measures['accuracy'].values, expected)
    np.testing.assert_array_equal(measures['tokens'].values, coordinates['length'] - 0.5)
    assert measures['accuracy'].axes == ('length', 'depth')
    assert measures['tokens'].axes == ('length',)
    resampled = measures['accuracy_resampled']
    assert resampled.axes == ('resample', 'length', 'depth')
    # Cells whose prompts have the same answers have no other ones in a resample.
    np.testing.assert_array_equal(resampled.values, np.broadcast_to(expected, (200, 11, 10)))
