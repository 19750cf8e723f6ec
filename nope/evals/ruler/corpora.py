"""Files that some tasks read: essays, SQuAD, HotpotQA and a long list of words.

They are those that RULER downloads, under its names, in one folder that the user gives.
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from nope.data.sources import folders
from nope.runtime import files

ESSAYS, SQUAD, HOTPOTQA = 'PaulGrahamEssays.json', 'squad.json', 'hotpotqa.json'
WORDS = 'english_words.json'

# What each holds.
FILES = {
    ESSAYS: 'the object {"text": ...} with all essays in one text',
    SQUAD: 'SQuAD 2.0, as dev-v2.0.json is published',
    HOTPOTQA: 'HotpotQA, as hotpot_dev_distractor_v1.json is published',
    WORDS: 'an object whose values are words',
}


class DocumentQuestion(NamedTuple):
    """own: numbers of the documents that come with it. near: of those from the same article."""

    text: str
    answers: tuple[str, ...]
    own: tuple[int, ...]
    near: tuple[int, ...]


class QuestionSet(NamedTuple):
    """documents: all of a data set, each once, sorted."""

    asked: list[DocumentQuestion]
    documents: list[str]


class Corpora:
    """The files in a folder, read when asked for.

    folder: None where there are none. ValueError, naming file and field, for a file that does not
    hold what FILES says; FileNotFoundError where it is not there.
    """

    def __init__(self, folder: pathlib.Path | None) -> None:
        self._folder = folder

    def check(self, names: Iterable[str]) -> None:
        """FileNotFoundError, with their layout, for all that are missing; reads the others."""
        wanted = list(dict.fromkeys(names))
        missing = [name for name in wanted if not self.has(name)]
        if missing:
            layout = '; '.join(f'{name}: {FILES[name]}' for name in missing)
            where = 'no folder was given' if self._folder is None else f"folder is '{self._folder}'"
            raise FileNotFoundError(f'{where}: {", ".join(missing)} missing ({layout})')
        for name in wanted:
            _ = self.essays if name == ESSAYS else self.questions(name)

    def has(self, name: str) -> bool:
        return self._folder is not None and (self._folder / name).is_file()

    def identity(self, names: Sequence[str]) -> Any:
        """Identity of the content of these files, and of the list of words where it is there."""
        known = [name for name in (*names, WORDS) if self.has(name)]
        return folders.identity('ruler', self._folder, known) if known and self._folder else None

    @functools.cached_property
    def essays(self) -> list[str]:
        """Words of the essays."""
        data = self._read(ESSAYS)
        if not isinstance(data, dict) or not isinstance(data.get('text'), str):
            raise self._error(ESSAYS, 'there is no text')
        if not data['text'].strip():
            raise self._error(ESSAYS, 'text is empty')
        return re.sub(r'\s+', ' ', data['text']).split(' ')

    @functools.cached_property
    def words(self) -> list[str]:
        """The long list of words."""
        data = self._read(WORDS)
        if not isinstance(data, dict) or not all(isinstance(word, str) for word in data.values()):
            raise self._error(WORDS, 'it holds something else')
        return list(data.values())

    def questions(self, name: str) -> QuestionSet:
        """Of SQUAD or HOTPOTQA."""
        if name not in self._questions:
            read = {SQUAD: _squad, HOTPOTQA: _hotpotqa}[name]
            try:
                found = read(self._read(name))
            except (KeyError, TypeError, IndexError, AttributeError) as error:
                raise self._error(name, f'{type(error).__name__} {error}') from error
            except ValueError as error:
                raise self._error(name, str(error)) from error
            if not found.asked:
                raise self._error(name, 'there is no question in it')
            self._questions[name] = found
        return self._questions[name]

    @functools.cached_property
    def _questions(self) -> dict[str, QuestionSet]:
        return {}

    def _read(self, name: str) -> Any:
        if self._folder is None or not self.has(name):
            self.check([name])
        assert self._folder is not None
        try:
            return files.read_json(self._folder / name)
        except ValueError as error:
            raise self._error(name, f'no JSON ({error})') from error

    def _error(self, name: str, what: str) -> ValueError:
        return ValueError(f'{self._folder}/{name}: {what}; it must hold {FILES[name]}')


def _squad(data: Any) -> QuestionSet:
    """Those that have an answer; near are the other paragraphs of an article."""
    articles = [
        [(_text(p['context']), p['qas']) for p in article['paragraphs']] for article in data['data']
    ]
    documents = sorted({context for article in articles for context, _ in article})
    number = {document: i for i, document in enumerate(documents)}
    asked = [
        DocumentQuestion(
            _text(qa['question']),
            tuple(_text(answer['text']) for answer in qa['answers']),
            (number[context],),
            tuple(number[other] for other, _ in article if other != context),
        )
        for article in articles
        for context, qas in article
        for qa in qas
        if not qa['is_impossible']
    ]
    return QuestionSet(_answered(asked), documents)


def _hotpotqa(data: Any) -> QuestionSet:
    contexts = [
        [f'{_text(title)}\n{"".join(parts)}' for title, parts in row['context']] for row in data
    ]
    documents = sorted({document for context in contexts for document in context})
    number = {document: i for i, document in enumerate(documents)}
    asked = [
        DocumentQuestion(
            _text(row['question']),
            (_text(row['answer']),),
            tuple(number[document] for document in context),
            (),
        )
        for row, context in zip(data, contexts, strict=True)
    ]
    return QuestionSet(_answered(asked), documents)


def _answered(asked: list[DocumentQuestion]) -> list[DocumentQuestion]:
    without = [question.text for question in asked if not question.answers]
    if without:
        raise ValueError(f'the question {without[0]!r} has no answers')
    return asked


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f'{json.dumps(value)[:40]} is no text')
    return value
