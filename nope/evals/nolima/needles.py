"""The needle set of NoLiMa: pairs of a needle and a question about it."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from nope.runtime.files import are_texts, read_json

CHARACTER = '{CHAR}'  # whom the needle tells of: drawn for each placement
DIRECT = 'direct'  # in the name of pairs that share words, which the score leaves out
_LAYOUT = (
    'a list of {id, system_prompt, task_template, needle, questions {type: text}, '
    'tests {id: {input_args}}, character_set}, as needle_set.json is published'
)


class Pair(NamedTuple):
    """A needle and a question. kind: of the question, as 'onehop'. number: its seeds begin with it.
    answers: right ones contain one of them where no character is drawn."""

    name: str
    kind: str
    number: int
    template: str
    needle: str
    question: str
    characters: tuple[str, ...]
    answers: tuple[str, ...]


def read(path: pathlib.Path) -> list[Pair]:
    """The pairs of a needle set, in the published order. FileNotFoundError and ValueError, naming
    the layout, for a file that is not there or holds something else."""
    if not path.is_file():
        raise FileNotFoundError(f'{path} is missing; it must be {_LAYOUT}')
    entries: Any = read_json(path)
    try:
        pairs = [pair for entry in entries for pair in _pairs(entry)]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f'{path}: {type(error).__name__} {error}; it must be {_LAYOUT}') from error
    if not pairs:
        raise ValueError(f'{path}: there is no question in it; it must be {_LAYOUT}')
    return pairs


def _pairs(entry: Mapping[str, Any]) -> list[Pair]:
    if 'distractors' in entry:
        raise ValueError(f'{entry["id"]} has distractors, which are not placed here')
    template = entry['task_template']
    if '{haystack}' not in template or '{question}' not in template:
        raise ValueError(f'task_template is {template!r}; it has {{haystack}} and {{question}}')
    pairs = []
    tests = itertools.product(entry['questions'].items(), entry['tests'].items())
    for (kind, question), (test, settings) in tests:
        name = f'{entry["id"]}_{test}_{kind}'
        if DIRECT in name:
            continue
        needle, asked = entry['needle'], question
        for number, argument in enumerate(settings['input_args'], 1):
            place = f'{{{number}}}'
            needle = needle.replace(place, argument)
            if place in question:  # published questions have one
                asked = question.replace(place, argument)
        characters = _texts(entry, 'character_set') if CHARACTER in needle else ()
        answers = () if characters else _texts(settings, 'gold_answers')
        number = int(entry['id'][:4])
        pairs.append(Pair(name, kind, number, template, needle, asked, characters, answers))
    return pairs


def _texts(holder: Mapping[str, Any], field: str) -> tuple[str, ...]:
    found = holder[field]
    if not (are_texts(found) and found):
        raise ValueError(f'{field} is {found!r}; it must be a list of texts')
    return tuple(found)
