"""Stand-ins for a user's data sets: right in every field and as many samples as were published,
for programs whose shapes no sample decides."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from nope.evals.longbench import DATASETS

_ANSWERS = {'retrieval': 'Paragraph 3', 'count': '7', 'classification': 'City'}


def write_longbench(folder: pathlib.Path) -> None:
    """The sixteen files of LongBench, NAME.jsonl, of equal lines."""
    for dataset in DATASETS.values():
        line = json.dumps(_longbench_sample(dataset.metric)) + '\n'
        (folder / f'{dataset.name}.jsonl').write_text(line * dataset.samples)


def _longbench_sample(metric: str) -> dict[str, Any]:
    """A sample that `metric` can score."""
    return {
        'input': 'Where?',
        'context': 'It is in Paris.',
        'answers': [_ANSWERS.get(metric, 'Paris')],
        'all_classes': ['City', 'Country'] if metric == 'classification' else None,
        'length': 4,
    }
