"""A tokenizer, a vocabulary and files of the user, all made up."""

from __future__ import annotations

import json
import pathlib
import random
import re

from nope.evals.ruler.vocabulary import Vocabulary
from tests.evals.passkey.fakes import Pieces

LETTERS = 'abcdefghijklmnopqrstuvwxyz'


def pieces() -> Pieces:
    """Of words five letters at most, single digits and marks."""
    return Pieces(_cut, vocab_size=100_000)


def _cut(text: str) -> list[str]:
    return re.findall(r' ?[A-Za-z]{1,5}|\d|\s|[^\w\s]', text)


def vocabulary() -> Vocabulary:
    stream = random.Random(0)

    def words(size: int) -> tuple[str, ...]:
        return tuple(''.join(stream.choices(LETTERS, k=stream.randint(3, 9))) for _ in range(size))

    return Vocabulary(words(2000), (*words(300), 'good', 'good-natured'), words(300), 'made up')


def write_files(folder: pathlib.Path) -> pathlib.Path:
    """The folder, with made-up files in the published layouts."""
    stream = random.Random(1)
    words = [''.join(stream.choices(LETTERS, k=stream.randint(2, 9))) for _ in range(500)]

    def sentence() -> str:
        return f'{" ".join(stream.choices(words, k=8)).capitalize()}.'

    folder.mkdir(parents=True, exist_ok=True)
    essays = '\n'.join(sentence() for _ in range(800))
    (folder / 'PaulGrahamEssays.json').write_text(json.dumps({'text': essays}))
    paragraphs = [
        {
            'context': f'{sentence()} The answer is {word}.',
            'qas': [
                {'question': sentence(), 'is_impossible': False, 'answers': [{'text': word}]},
                {'question': 'Impossible?', 'is_impossible': True, 'answers': []},
            ],
        }
        for word in words[:200]
    ]
    articles = [{'paragraphs': paragraphs[i : i + 4]} for i in range(0, 200, 4)]
    (folder / 'squad.json').write_text(json.dumps({'data': articles}))
    titled = [[sentence(), [sentence(), sentence()]] for _ in range(200)]
    rows = [
        {'question': sentence(), 'answer': row[0][1][1], 'context': row}
        for row in (stream.sample(titled, 10) for _ in range(20))
    ]
    (folder / 'hotpotqa.json').write_text(json.dumps(rows))
    return folder
