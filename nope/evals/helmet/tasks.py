"""The four tasks of the recall group: how each is asked and scored."""

from __future__ import annotations

import dataclasses
import re
import string
from collections.abc import Callable, Mapping
from typing import Any

from nope.evals.answers import Sample
from nope.evals.ruler.metrics import match_all
from nope.evals.ruler.needles import QUESTION, SINGULAR

SHOTS = 2  # examples before a question of json_kv; RULER's tasks have none
VALUE = 'Corresponding value:'
JSON_KV = (
    '{context}\n\nExtract the value corresponding to the specified key in the JSON object below.'
    f'\n\n{{demos}}Key: {{question}}\n{VALUE}'
)
_ARTICLES = re.compile(r'\b(a|an|the)\b')
_NO_PUNCTUATION = str.maketrans('', '', string.punctuation)


@dataclasses.dataclass(frozen=True)
class Task:
    """A task.

    files: below the folder, by length. budget: tokens of an answer, which a length includes.
    fields: of a prompt, from a row. One of them is `context`.
    score: of a prediction behind the last line of its prompt, 0 .. 1.
    """

    files: Mapping[int, str]
    budget: int
    template: str
    columns: tuple[str, ...]
    fields: Callable[[Mapping[str, Any]], dict[str, str]]
    score: Callable[[str, Sample], float]


def recall(prediction: str, sample: Sample) -> float:
    """Share of the answers that the last line of the prompt and the prediction contain, case
    ignored."""
    return match_all(_whole(prediction, sample), sample.answers)


def substring(prediction: str, sample: Sample) -> float:
    """1.0 where one of the answers is in the prediction, or in the rest of the line that names a
    value; without case, punctuation and articles."""
    whole = _whole(prediction, sample)
    found = re.search(rf'{VALUE}(.*)(?:\n|$)', whole, re.IGNORECASE)
    assert found is not None  # the prompt's last line
    value = re.sub(f'^{VALUE}', '', found[1].strip(), flags=re.IGNORECASE).strip()
    texts = _plain(whole), _plain(value)
    return float(any(_plain(answer) in text for answer in sample.answers for text in texts))


def _whole(prediction: str, sample: Sample) -> str:
    return sample.text.rpartition('\n')[2] + prediction


def _plain(text: str) -> str:
    return ' '.join(_ARTICLES.sub(' ', text.lower().translate(_NO_PUNCTUATION)).split())


def _of_pairs(row: Mapping[str, Any]) -> dict[str, str]:
    demos = [f'Key: {key}\n{VALUE} {value}\n\n' for key, value in row['demos'][:SHOTS]]
    return {name: row[name] for name in ('context', 'question')} | {'demos': ''.join(demos)}


def _of_needles(row: Mapping[str, Any]) -> dict[str, str]:
    return {'context': row['context'], 'query': row['query'], 'kind': row['type_needle_v']}


def _needles(folder: str, template: str, budget: int) -> Task:
    lengths = [2**power for power in range(13, 18)]
    return Task(
        {length: f'ruler/{folder}/validation_{length}.jsonl' for length in lengths},
        budget,
        template.replace('? ', '?\n'),  # where RULER's own prompts have a space
        ('context', 'query', 'type_needle_v'),
        _of_needles,
        recall,
    )


_PAIRS = {8192: 105, 16384: 220, 32768: 440, 65536: 900, 131072: 1800}

TASKS: Mapping[str, Task] = {
    'ruler_niah_mk_2': _needles('niah_multikey_2', SINGULAR, 50),
    'ruler_niah_mk_3': _needles('niah_multikey_3', SINGULAR, 100),
    'ruler_niah_mv': _needles('niah_multivalue', QUESTION, 50),
    'json_kv': Task(
        {length: f'json_kv/test_k{pairs}_dep6.jsonl' for length, pairs in _PAIRS.items()},
        100,
        JSON_KV,
        ('context', 'question', 'demos'),
        _of_pairs,
        substring,
    ),
}
