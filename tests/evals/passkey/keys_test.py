from __future__ import annotations

import numpy as np
import pytest

from nope.evals.passkey import keys
from nope.evals.passkey.keys import PasskeyQuestion, PieceCounts, fillers, plan, repeats
from tests.vectors import VECTORS

PLAN = VECTORS['passkey_plan_seed42_max4096']
COUNTS = VECTORS['passkey_token_counts_llama_tokenizer']
ALONE = PieceCounts(
    task=COUNTS['task_with_bos'],
    filler=COUNTS['garbage_measured_alone'],
    info=COUNTS['info_measured_with_bos'],
    question=COUNTS['question_measured_alone'],
    answer=COUNTS['key'],
)
LENGTHS = pytest.mark.parametrize('max_length', [4096, 32768])


def by_cell(questions: tuple[PasskeyQuestion, ...]) -> list[list[PasskeyQuestion]]:
    """Questions of each cell, which has ten."""
    return [list(questions[i : i + 10]) for i in range(0, len(questions), 10)]


def prompt_tokens(length: int) -> int:
    pieces = COUNTS['task_with_bos'] + COUNTS['info_in_context'] + COUNTS['question_in_context']
    return pieces + repeats(length, ALONE) * COUNTS['garbage_in_context']


@pytest.mark.parametrize(
    ('index', 'expected'),
    [*enumerate(PLAN['first3']), (-1, PLAN['last'])],
    ids=['first3-0', 'first3-1', 'first3-2', 'last'],
)
def test_vector_passkey_plan_seed42_max4096(index: int, expected: dict) -> None:
    assert by_cell(plan(4096, seed=42))[index] == [
        PasskeyQuestion(expected['seq_len'], expected['depth'], test, position, key)
        for test, (position, key) in enumerate(
            zip(expected['info_positions'], expected['pass_keys'], strict=True)
        )
    ]


@pytest.mark.parametrize('length', COUNTS['prompt_tokens_for_nominal_length'])
def test_vector_prompt_tokens_for_nominal_length(length: str) -> None:
    expected = COUNTS['prompt_tokens_for_nominal_length'][length]
    assert prompt_tokens(int(length)) == expected


@LENGTHS
def test_positions_are_in_the_tenth_of_their_depth(max_length: int) -> None:
    asked = plan(max_length)
    assert len(asked) == 1600
    for question in asked:
        assert 10_000 <= int(question.key) <= 99_999
        assert question.position // (question.length // 10) == round(10 * question.depth)
        assert 0 <= question.position < question.length


def test_the_plan_depends_on_its_seed_and_on_no_other_generator() -> None:
    assert plan(4096, seed=7) == plan(4096, seed=7) != plan(4096, seed=8)
    state = np.random.get_state(legacy=False)['state']['key'].copy()
    plan(4096)
    np.testing.assert_array_equal(np.random.get_state(legacy=False)['state']['key'], state)


@pytest.mark.parametrize('max_length', [0, 144, 4100, -4096])
def test_a_length_that_the_grid_cannot_divide_is_refused(max_length: int) -> None:
    with pytest.raises(ValueError, match=f'max_length is {max_length}'):
        plan(max_length)


@LENGTHS
def test_pieces_of_every_prompt_fit(max_length: int) -> None:
    for question in plan(max_length):
        room = question.length - ALONE.answer
        before, after = fillers(question.length, question.position, ALONE)
        assert before >= 0
        assert after >= 0
        place = ALONE.task + before * ALONE.filler
        assert place <= max(question.position, ALONE.task)
        end = place + ALONE.info + after * ALONE.filler + ALONE.question
        assert room - ALONE.filler < end <= room
        assert prompt_tokens(question.length) <= room


@pytest.mark.parametrize(
    ('position', 'before'), [(0, 0), (33, 0), (57, 0), (58, 1), (209, 7), (255, 7)]
)
def test_the_key_stands_where_whole_fillers_end(position: int, before: int) -> None:
    assert fillers(256, position, ALONE) == (before, 7 - before)


@pytest.mark.parametrize('length', [0, 64, 79])
def test_a_length_without_room_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=rf'length {length} is shorter .* 80 tokens'):
        repeats(length, ALONE)
    with pytest.raises(ValueError, match='shorter'):
        fillers(length, 0, ALONE)


def test_chosen_lengths_come_longest_first_with_keys_inside_their_depths() -> None:
    asked = keys.plan_of_lengths((64, 1024, 100), 42)
    assert [(q.length, q.depth, q.test) for q in asked] == [
        (length, depth / 10, test)
        for length in (1024, 100, 64)
        for depth in range(10)
        for test in range(keys.TESTS)
    ]
    for question in asked:
        assert question.position // (question.length // 10) == round(10 * question.depth)
        assert int(question.key) in keys.KEYS


def test_a_longer_list_of_lengths_changes_nothing_of_a_shorter_one() -> None:
    few, many = keys.plan_of_lengths((128, 256), 7), keys.plan_of_lengths((8192, 256, 128), 7)
    assert many[100:] == few
    assert keys.plan_of_lengths((128, 256), 8) != few
    drawn = [tuple(question.key for question in cell) for cell in by_cell(few)]
    assert set(drawn[:10]).isdisjoint(drawn[10:])


def test_keys_of_a_chosen_length_are_the_same_on_every_call() -> None:
    # Pinned: other prompts under the same identity would pass for the same measurement.
    first = keys.plan_of_lengths((128,), 42)[:10]
    assert [question.position for question in first] == [8, 6, 5, 8, 4, 9, 4, 7, 9, 0]
    assert [question.key for question in first[:3]] == ['22955', '27071', '24002']


def test_a_length_without_ten_depths_is_refused() -> None:
    with pytest.raises(ValueError, match='a length is 9 tokens; it must be at least 10'):
        keys.plan_of_lengths((128, 9))
