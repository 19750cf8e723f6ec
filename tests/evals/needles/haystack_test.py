"""A prompt has the tokens it was given, to the word, and its needles where they were put."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nope.data.templates import BRIEF, PAPER
from nope.evals.needles.haystack import Haystack, Needle
from tests.evals.needles import fakes
from tests.evals.needles.fakes import BYTES, Pieces

HAYSTACK = Haystack('Task.\n', (Needle(0.5, '\nN1.\n'), Needle(0.25, '\nN2.\n')), '\nQuestion')
FILLER = ' One two. Three. Four five six.'  # 6 words, 3 sentences
DEPTHS = st.floats(0, 1)


@pytest.mark.parametrize(
    ('words', 'expected'),
    [
        (0, 'Task.\n\nN2.\n\nN1.\n\nQuestion'),
        (1, 'Task.\n\nN2.\n\nN1.\n One\nQuestion'),
        (2, 'Task.\n\nN2.\n\nN1.\n One two.\nQuestion'),
        (5, 'Task.\n\nN2.\n One two.\nN1.\n Three. Four five\nQuestion'),
        (6, 'Task.\n\nN2.\n One two.\nN1.\n Three. Four five six.\nQuestion'),
        (8, 'Task.\n One two.\nN2.\n Three.\nN1.\n Four five six. One two.\nQuestion'),
    ],
)
def test_needles_stand_between_whole_sentences(words: int, expected: str) -> None:
    assert HAYSTACK.text(FILLER, words) == expected


def test_filler_without_sentences_is_one() -> None:
    assert HAYSTACK.text(' a b', 8) == 'Task.\n a b\nN2.\n a b\nN1.\n a b a b\nQuestion'


def test_depth_one_is_behind_all_whole_sentences() -> None:
    last = Haystack('', (Needle(1, '\nN.\n'),), '\nQ')
    assert last.text(FILLER, 4) == ' One two. Three.\nN.\n Four\nQ'


def test_needles_of_one_depth_keep_their_order() -> None:
    needles = (Needle(0.5, '\nb\n'), Needle(0.5, '\na\n'), Needle(0.1, '\nc\n'))
    assert re.findall(r'[abc]', Haystack('', needles, '').text('. .', 4)) == ['c', 'b', 'a']


@given(depths=st.lists(DEPTHS, max_size=5), words=st.integers(0, 60))
def test_without_its_needles_a_prompt_is_a_piece_of_filler(depths: list[float], words: int) -> None:
    needles = tuple(Needle(depth, f'\n<{i}>\n') for i, depth in enumerate(depths))
    text = Haystack('Task.\n', needles, '\nQuestion').text(FILLER, words)
    assert text.startswith('Task.\n') and text.endswith('\nQuestion')
    filler = re.sub(r'\n<\d>\n', '', text)[len('Task.\n') : -len('\nQuestion')]
    assert (FILLER * 11).startswith(filler)
    assert len(filler.split()) == words
    in_front = [text.split(needle.text)[0] for needle in needles]
    sentences = filler.count('.')
    for depth, front in zip(depths, in_front, strict=True):
        assert front[len('Task.\n') :].count('.') == int(depth * sentences)


@settings(deadline=None, max_examples=40)
@given(
    length=st.integers(40, 1500),
    depths=st.lists(DEPTHS, max_size=3),
    bos=st.booleans(),
    filler=st.sampled_from([PAPER.filler, BRIEF.filler, FILLER]),
    cut=st.sampled_from([list, fakes.llama_pieces]),
)
def test_one_more_word_would_exceed_the_budget(
    length: int, depths: list[float], bos: bool, filler: str, cut
) -> None:
    haystack = Haystack('T\n', tuple(Needle(depth, '\nN.\n') for depth in depths), '\nQ')
    tokenizer = Pieces(cut)
    ids = haystack.ids(tokenizer, length, filler, bos)
    assert len(ids) <= length
    text = tokenizer.decode(ids).removeprefix(' ' if cut is fakes.llama_pieces else '')
    words = len(re.sub(r'T\n|\nN\.\n|\nQ', '', text).split())
    assert text == haystack.text(filler, words)
    assert len(tokenizer.encode(haystack.text(filler, words + 1))) + bos > length


def test_a_budget_of_whole_words_is_met_exactly() -> None:
    tokenizer = Pieces(lambda text: re.findall(r'\S+\s*', text))
    for length in range(20, 200):
        assert len(HAYSTACK.ids(tokenizer, length, PAPER.filler, True)) == length


def test_long_prompts_take_few_tries() -> None:
    encoded: list[int] = []

    def cut(text: str) -> list[str]:
        encoded.append(len(text))
        return fakes.llama_pieces(text)

    ids = HAYSTACK.ids(Pieces(cut), 8000, PAPER.filler, True)
    assert len(ids) == 8000
    assert len(encoded) <= 8


def test_words_that_share_tokens_end_the_search() -> None:
    whole = Pieces(lambda text: [text])
    assert len(HAYSTACK.ids(whole, 5, FILLER, True)) == 2
    assert whole.decode(HAYSTACK.ids(whole, 5, FILLER, True)) == HAYSTACK.text(FILLER, 5)


def test_least_is_the_shortest_length() -> None:
    least = HAYSTACK.least(BYTES, FILLER, bos=True)
    assert least == 1 + len('Task.\n\nN2.\n\nN1.\n\nQuestion')
    assert len(HAYSTACK.ids(BYTES, least, FILLER, True)) == least
    with pytest.raises(ValueError, match=rf'length {least - 1} is shorter .* {least} tokens'):
        HAYSTACK.ids(BYTES, least - 1, FILLER, True)


@pytest.mark.parametrize('depth', [-0.1, 1.01, float('nan')])
def test_a_depth_outside_the_filler_is_refused(depth: float) -> None:
    with pytest.raises(ValueError, match='depth is'):
        Haystack('', (Needle(depth, ''),), '')


@pytest.mark.parametrize('filler', ['', ' \n'])
def test_filler_without_words_is_refused(filler: str) -> None:
    with pytest.raises(ValueError, match='filler is'):
        HAYSTACK.text(filler, 1)
