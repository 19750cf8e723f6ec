"""Made-up needles and books in NoLiMa's layout."""

from __future__ import annotations

import json
import pathlib
from typing import Any

TEMPLATE = 'Read:\n\n{haystack}\n\nQuestion: {question}\n\n Return only the answer.'
NAMES = ['Ann', 'Bob', 'Cleo']
ENTRIES: list[dict[str, Any]] = [
    {
        'id': '0401Inv',
        'reasoning_type': 'world_knowledge',
        'system_prompt': '',
        'task_template': TEMPLATE,
        'needle': 'Next to {1} there lives {CHAR}.',
        'questions': {'onehop': 'Who has been to {2}?', 'twohop': 'Who has been to {3}?'},
        'character_set': NAMES,
        'tests': {
            'T1': {'input_args': ['the tower', 'Paris', 'France']},
            'T2': {'input_args': ['the gate', 'Berlin', 'Germany']},
        },
    },
    {
        'id': '0500',
        'system_prompt': '',
        'task_template': TEMPLATE,
        'needle': 'A {1} was seen.',
        'questions': {'onehop': 'Which animal?', 'direct': 'Was a {1} seen?'},
        'tests': {'T1': {'input_args': ['poodle'], 'gold_answers': ['dog', 'poodle']}},
    },
]


def book(lines: int, word: str) -> str:
    return ''.join(f'{word} {number} went by.\n' for number in range(lines))


def write(folder: pathlib.Path, entries: Any = ENTRIES, lines: int = 120) -> None:
    (folder / 'needlesets').mkdir(parents=True, exist_ok=True)
    (folder / 'haystack/rand_shuffle').mkdir(parents=True, exist_ok=True)
    (folder / 'needlesets/needle_set.json').write_text(json.dumps(entries))
    for number, word in ((1, 'cart'), (2, 'boat')):
        path = folder / f'haystack/rand_shuffle/rand_book_{number}.txt'
        path.write_text(book(lines, word))
