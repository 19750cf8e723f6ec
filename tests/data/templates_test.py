from __future__ import annotations

import pytest

from nope.data.templates import BRIEF, KEYS, PAPER

TEMPLATES = pytest.mark.parametrize('template', [PAPER, BRIEF], ids=lambda t: t.name)


def test_keys_are_all_numbers_of_five_digits():
    assert {len(str(key)) for key in (KEYS[0], KEYS[-1])} == {5}
    assert len(KEYS) == 90_000


@TEMPLATES
def test_a_prompt_is_its_pieces_in_order(template):
    pieces = template.prompt('12345', 2, 1).split(template.filler)
    info = template.info.replace('{key}', '12345')
    assert pieces == [template.task, '', info, template.question]


@TEMPLATES
def test_the_key_stands_twice_in_the_prompt_and_once_in_the_answer(template):
    assert template.prompt('12345', 3, 4).count('12345') == 2
    assert template.answer('12345') == ' 12345'


@TEMPLATES
def test_the_question_ends_with_the_words_before_the_key(template):
    before, _, _ = template.info.partition('{key}')
    words = before.removesuffix(template.answer_prefix)
    assert words != before
    assert template.question.endswith(words.strip())
    assert template.question == template.question.rstrip()


@TEMPLATES
def test_pieces_are_ascii(template):
    assert template.prompt('12345', 1, 1).isascii()


@TEMPLATES
def test_shortest_is_a_prompt_without_filler_and_its_answer(template):
    assert template.shortest == len(template.prompt('12345', 0, 0) + ' 12345')


def test_the_brief_template_leaves_room_in_128_bytes():
    assert BRIEF.shortest + 4 * len(BRIEF.filler) <= 128
