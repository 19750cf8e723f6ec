"""Prompts of several named keys, of keys that look alike, and of keys in real text."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

from nope.data.templates import BRIEF, BRIEF_NAMED, NAMED, PAPER, Template
from nope.evals import passkey
from nope.evals.passkey import needles
from nope.evals.passkey.needles import NeedlesPlan, draw_needles, plan
from nope.evals.samples import SampleLog
from tests.evals.passkey import fakes
from tests.evals.passkey.fakes import BYTES, Model, Pieces

LENGTHS = (128, 1024)
STATED = re.compile(r'\n([A-Z]): (\d{5})\.')


def of_four(template: Template = BRIEF, tokenizer=BYTES, **more) -> NeedlesPlan:
    asked = {'bos': False, 'tests': 2, 'lengths': LENGTHS, 'needles': 4} | more
    return plan(template, tokenizer, max(asked['lengths']), 3, **asked)


def text_of(made: NeedlesPlan, question) -> str:
    return made.tokenizer.decode(made.prompt(question).ids)


@pytest.mark.parametrize('alike', [False, True])
def test_a_prompt_states_its_keys_and_asks_for_that_of_the_cell(alike):
    made = of_four(alike=alike)
    for question in made.questions:
        text = text_of(made, question)
        stated = dict(STATED.findall(text))
        assert len(stated) == len(set(stated.values())) == 4
        (name,) = re.findall(r'\n([A-Z]):$', text)
        assert stated[name] == question.key
        assert BYTES.decode(made.prompt(question).answer) == f' {question.key}'
        off = [sum(a != b for a, b in zip(k, question.key, strict=True)) for k in stated.values()]
        assert sorted(off) == [0, 1, 1, 1] if alike else sorted(off)[1] >= 1


def test_the_key_that_is_asked_for_lies_at_the_depth_of_its_cell():
    made = of_four(lengths=(8192,))
    for question in made.questions:
        text = text_of(made, question)
        at = text.index(f': {question.key}.') / len(text)
        assert question.depth - 0.02 <= at <= question.depth + 0.12


@pytest.mark.parametrize('alike', [False, True])
@pytest.mark.parametrize('count', [1, 2, 26])
def test_no_two_keys_of_a_prompt_share_a_name_or_a_number(count, alike):
    drawn = draw_needles(np.random.RandomState(0), '10000', count, alike)
    assert drawn[0].key == '10000'
    assert len({n.name for n in drawn}) == len({n.key for n in drawn}) == count
    assert all(re.fullmatch(r'[1-9]\d{4}', n.key) for n in drawn)
    assert (drawn[0].name == '') == (count == 1)


def test_prompts_are_as_long_as_filler_allows_and_never_longer():
    for tokenizer in (BYTES, Pieces(fakes.llama_pieces)):
        for template in (BRIEF, PAPER):
            made = of_four(template, tokenizer, lengths=(512, 1024), bos=True)
            assert made.template is NAMED[template.name]
            filler = len(tokenizer.encode(template.filler))
            for question in made.questions:
                prompt = made.prompt(question)
                unused = question.length - len(prompt.ids) - len(prompt.answer)
                assert 0 <= unused < filler
                assert prompt.ids[0] == tokenizer.bos_id


def test_a_longer_list_of_lengths_changes_no_prompt_of_a_shorter_one():
    few, many = of_four(), of_four(lengths=(8192, *LENGTHS))
    shared = [q for q in many.questions if q.length in LENGTHS]
    assert tuple(shared) == few.questions
    for question in few.questions:
        np.testing.assert_array_equal(few.prompt(question).ids, many.prompt(question).ids)


def test_a_prompt_is_the_same_on_every_call_and_another_for_another_seed():
    made = of_four()
    question = made.questions[-1]
    np.testing.assert_array_equal(made.prompt(question).ids, made.prompt(question).ids)
    other = plan(BRIEF, BYTES, 1024, 4, bos=False, tests=2, lengths=LENGTHS, needles=4)
    assert text_of(made, question) != text_of(other, other.questions[-1])
    # Pinned: other prompts under the same identity would pass for the same measurement.
    assert text_of(made, question) == (
        'Find the key.\n'
        ' The sky is blue.\n'
        'L: 58295.\n'
        'J: 59216. The sky is blue.\n'
        'X: 74057. The sky is blue.\n'
        'E: 32131.\n'
        'E:'
    )


@pytest.mark.parametrize('count', [1, 4])
def test_keys_lie_in_text_in_place_of_filler(count):
    letters = np.frombuffer(b'lorem ipsum dolor ', np.uint8).astype(np.int32)
    rows = {n: np.stack([np.roll(np.resize(letters, n + 1), i) for i in range(7)]) for n in LENGTHS}
    made = of_four(needles=count, texts=rows)
    for question in made.questions:
        prompt = made.prompt(question)
        assert len(prompt.ids) + len(prompt.answer) == question.length
        text = BYTES.decode(prompt.ids)
        assert BRIEF.filler not in text and question.key in text
        asks = r'\nKey:$' if count == 1 else r'\n[A-Z]:$'
        states = r'\nKey: \d{5}\. \d{5}\.\n' if count == 1 else STATED.pattern
        assert re.search(asks, text) and len(re.findall(states, text)) == count
        inside = re.sub(f'{states}|{asks}', '', text.removeprefix(made.template.task))
        row = rows[question.length][(round(question.depth * 10) * 10 + question.test) % 7]
        assert inside == BYTES.decode(row)[: len(inside)]


def test_records_say_how_many_keys_there_were_and_in_what(tmp_path: pathlib.Path):
    def answer(text: str) -> str:
        return ' ' + dict(STATED.findall(text))[re.findall(r'\n([A-Z]):$', text)[0]]

    def nearest(text: str) -> str:
        return ' ' + STATED.findall(text)[-1][1]

    made = of_four(tests=4)
    found = passkey.run(Model(BYTES, answer), made, SampleLog(tmp_path / 'a'), window=128)
    assert np.all(found['accuracy'] == 1)
    facts = {'needles': 4, 'alike': False, 'haystack': 'filler', 'template': 'brief_named'}
    assert facts.items() <= found.attributes.items()
    assert found.coordinates['length'].tolist() == list(LENGTHS)
    guess = passkey.run(Model(BYTES, nearest), made, SampleLog(tmp_path / 'b'), window=128)
    assert 0.05 < guess['accuracy'].mean() < 0.6


def test_lengths_without_room_for_the_keys_are_refused():
    least = needles.shortest(BRIEF_NAMED, BYTES, False, 4)
    of_four(lengths=(least,))
    with pytest.raises(ValueError, match=rf'prompt of 4 keys .* take {least} tokens'):
        of_four(lengths=(least - 1, 256))
    kept = plan(BRIEF, BYTES, 512, bos=False, tests=1, needles=4).questions
    assert {q.length for q in kept} == {n for n in range(32, 513, 32) if n >= least}
