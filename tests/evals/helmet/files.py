"""Made-up files of HELMET's recall group, in the published layout."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from nope.evals.helmet import TASKS

ROWS = 3


def pair(number: int) -> dict[str, Any]:
    return {
        'context': json.dumps({f'k{i}-0': f'v{i}-{number}' for i in range(9)}),
        'question': f'k{number}-0',
        'answer': f'v{number}-{number}',
        'demos': [['d0', 'e0'], ['d1', 'e1'], ['d2', 'e2']],
        'num_kvs': 9,
    }


def needle(number: int, kind: str, values: int) -> dict[str, Any]:
    answers = [f'{number}{value}77' for value in range(values)]
    lines = [f'One of the special magic {kind}s for red-hat is: {answer}.' for answer in answers]
    row = {'context': '\n'.join(['The grass is green.', *lines]), 'query': 'red-hat'}
    return {**row, 'type_needle_v': kind, 'outputs': answers, 'index': number}


def write(folder: pathlib.Path, *lengths: int, rows: int = ROWS) -> None:
    for task, of_task in TASKS.items():
        for length in lengths:
            path = folder / of_task.files[length]
            path.parent.mkdir(parents=True, exist_ok=True)
            many = task == 'ruler_niah_mv'
            made = [
                pair(i) if task == 'json_kv' else needle(i, 'numbers' if many else 'uuid', 1 + many)
                for i in range(rows)
            ]
            path.write_text(''.join(json.dumps(row) + '\n' for row in made))
