from __future__ import annotations

import pytest

from nope.data.templates import BRIEF, PAPER

TEMPLATES = pytest.mark.parametrize('template', [PAPER, BRIEF], ids=lambda t: t.name)


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


def test_the_brief_template_leaves_room_in_128_bytes():
    assert BRIEF.shortest + 4 * len(BRIEF.filler) <= 128
