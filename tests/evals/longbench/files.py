"""LongBench files that were never published: small, and right in every field."""

from __future__ import annotations

import json
import pathlib
from typing import Any

ANSWERS = {'retrieval': ['Paragraph 3'], 'count': ['7'], 'classification': ['City']}


def row(metric: str = 'qa_f1', **changed: Any) -> dict[str, Any]:
    """One sample that `metric` can score, with a field that no one asks for."""
    fields = {
        'input': 'Where?',
        'context': 'It is in Paris.',
        'answers': ANSWERS.get(metric, ['Paris', 'in Paris']),
        'all_classes': ['City', 'Country'] if metric == 'classification' else None,
        'length': 4,
        'language': 'en',
    }
    return fields | changed


def write(folder: pathlib.Path, name: str, rows: list[dict[str, Any]]) -> pathlib.Path:
    """The file of one data set; makes its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f'{name}.jsonl'
    path.write_text(''.join(json.dumps(fields) + '\n' for fields in rows))
    return path
