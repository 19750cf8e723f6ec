from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from nope.evals.ruler.corpora import ESSAYS, HOTPOTQA, SQUAD, WORDS, Corpora
from tests.evals.ruler.pieces import write_files


def put(folder: pathlib.Path, name: str, value: Any) -> Corpora:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
    return Corpora(folder)


def qa(**changes: Any) -> dict[str, Any]:
    return {'question': 'Who?', 'is_impossible': False, 'answers': [{'text': 'He'}], **changes}


def test_questions_of_squad_know_their_article(tmp_path: pathlib.Path) -> None:
    first = [{'context': 'b', 'qas': [qa(), qa(is_impossible=True)]}, {'context': 'a', 'qas': []}]
    second = [{'context': 'c', 'qas': [qa(question='What?')]}]
    data = {'data': [{'paragraphs': first}, {'paragraphs': second}]}
    found = put(tmp_path, SQUAD, data).questions(SQUAD)
    assert found.documents == ['a', 'b', 'c']
    assert found.asked == [('Who?', ('He',), (1,), (0,)), ('What?', ('He',), (2,), ())]


def test_documents_of_hotpotqa_have_a_title(tmp_path: pathlib.Path) -> None:
    row = {'question': 'Who?', 'answer': 'He', 'context': [['T', ['x. ', 'y.']], ['A', ['z']]]}
    found = put(tmp_path, HOTPOTQA, [row]).questions(HOTPOTQA)
    assert found.documents == ['A\nz', 'T\nx. y.']
    assert found.asked == [('Who?', ('He',), (1, 0), ())]


def test_essays_are_words(tmp_path: pathlib.Path) -> None:
    assert put(tmp_path, ESSAYS, {'text': 'One \n two\tthree'}).essays == ['One', 'two', 'three']


@pytest.mark.parametrize(
    ('name', 'value', 'message'),
    [
        (ESSAYS, '{', 'no JSON'),
        (ESSAYS, {'texts': ''}, 'there is no text'),
        (ESSAYS, {'text': ' \n'}, 'text is empty'),
        (SQUAD, {'data': [{}]}, "KeyError 'paragraphs'"),
        (SQUAD, {'data': []}, 'there is no question'),
        (SQUAD, {'data': [{'paragraphs': [{'context': 1, 'qas': []}]}]}, '1 is no text'),
        (
            SQUAD,
            {'data': [{'paragraphs': [{'context': 'a', 'qas': [qa(answers=[])]}]}]},
            "the question 'Who.' has no answers",
        ),
        (HOTPOTQA, {'question': 'Who?'}, 'TypeError'),
    ],
)
def test_files_of_another_layout_are_refused(
    tmp_path: pathlib.Path, name: str, value: Any, message: str
) -> None:
    corpora = put(tmp_path, name, value)
    with pytest.raises(ValueError, match=rf'{name}: {message}.*; it must hold'):
        corpora.check([name])


def test_a_list_of_words_is_an_object(tmp_path: pathlib.Path) -> None:
    assert put(tmp_path, WORDS, {'0': 'one', '1': 'two'}).words == ['one', 'two']
    with pytest.raises(ValueError, match='it must hold an object whose values are words'):
        _ = put(tmp_path, WORDS, ['one']).words


def test_identity_follows_the_content(tmp_path: pathlib.Path) -> None:
    first = Corpora(write_files(tmp_path / 'a')).identity([ESSAYS])
    assert Corpora(write_files(tmp_path / 'b')).identity([ESSAYS]) == first
    put(tmp_path / 'b', ESSAYS, {'text': 'another'})
    assert Corpora(tmp_path / 'b').identity([ESSAYS]) != first
    assert Corpora(None).identity([]) is None
