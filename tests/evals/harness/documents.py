"""Two documents of every task of Table 1, in the columns of the published data sets."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def _choices(*texts: str) -> dict[str, list[str]]:
    return {'text': list(texts), 'label': list('ABCD'[: len(texts)])}


DOCUMENTS: Mapping[str, Rows] = {
    'arc_challenge': [
        {'id': 'a', 'question': 'Which is hot?', 'choices': _choices('ice', 'the sun', 'snow')}
        | {'answerKey': 'B'},
        {'id': 'b', 'question': 'Which flies?', 'choices': _choices('a bird', 'a stone')}
        | {'answerKey': 'A'},
    ],
    'arc_easy': [
        {'id': 'c', 'question': 'Which is wet?', 'choices': _choices('water', 'sand', 'bread')}
        | {'answerKey': 'A'},
        {'id': 'd', 'question': 'Which is big?', 'choices': _choices('an ant', 'a hill')}
        | {'answerKey': 'B'},
    ],
    'boolq': [
        {'passage': 'Cats are animals.', 'question': 'are cats animals', 'label': 1, 'idx': 0},
        {'passage': 'Ice is cold.', 'question': 'is ice hot', 'label': 0, 'idx': 1},
    ],
    'hellaswag': [
        {
            'activity_label': 'Swimming',
            'ctx_a': 'A man [title] stands.',
            'ctx_b': 'the Man',
            'endings': ['dives  in.', 'eats [step] soup.', 'sings.', 'flies away.'],
            'label': '0',
        },
        {
            'activity_label': 'Baking',
            'ctx_a': 'A cake.',
            'ctx_b': '',
            'endings': ['is red.', 'runs.', 'is baked.', 'sleeps.'],
            'label': '2',
        },
    ],
    'openbookqa': [
        {'question_stem': 'The sun is', 'choices': _choices('cold', 'a star'), 'answerKey': 'B'},
        {'question_stem': 'Fish live in', 'choices': _choices('water', 'fire'), 'answerKey': ' A'},
    ],
    'piqa': [
        {'goal': 'Open a door', 'sol1': 'turn the handle', 'sol2': 'sing', 'label': 0},
        {'goal': 'Boil water', 'sol1': 'wait', 'sol2': 'heat it', 'label': 1},
    ],
    'winogrande': [
        {
            'sentence': 'The _ is red and round.',
            'option1': 'ball',
            'option2': 'river',
            'answer': '1',
        },
        {'sentence': 'Ann sees that _ swims.', 'option1': 'a tree', 'option2': 'Bob'}
        | {'answer': '2'},
    ],
}


def write_jsonl(path: pathlib.Path, rows: Rows) -> None:
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))


def write_all(folder: pathlib.Path) -> None:
    for name, rows in DOCUMENTS.items():
        write_jsonl(folder / f'{name}.jsonl', rows)
