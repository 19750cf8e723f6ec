"""Exact match of final answers (arXiv 2305.19466).

A prediction counts by its final answer alone: the text behind `The answer is`, or between the
brackets behind `The sorted list is`, up to the final full stop. Copying, reversal, SCAN and PCFG
count by the whole target. As in the released code the last such sentence counts, blanks inside
numbers and leading zeros do not, nor do upper and lower case of a word.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Form:
    """Form of a task's final answer. `pattern` finds it in a text as group 1. `canonical` maps that
    to a value to compare, or to None for no such answer."""

    name: str
    pattern: re.Pattern[str]
    canonical: Callable[[str], str | None]

    def parse(self, text: str) -> str | None:
        """Canonical final answer of a predicted target, or None where it does not parse."""
        found = self.pattern.fullmatch(text)
        return None if found is None else self.canonical(found[1].strip())

    def matches(self, prediction: str, gold: str) -> bool:
        """Whether a predicted target has the final answer of the gold target.

        ValueError where the gold target has none.
        """
        right = self.parse(gold)
        if right is None:
            raise ValueError(f'gold target {gold!r} has no answer of the form {self.name}')
        return self.parse(prediction) == right


def _number(text: str) -> str | None:
    digits = ''.join(text.split())
    if not re.fullmatch('[0-9]+', digits):
        return None
    return digits.lstrip('0') or '0'


def _word(text: str) -> str | None:
    return text.casefold() or None


def _words(text: str) -> str | None:
    items = [' '.join(item.split()) for item in text.split(',')]
    return ', '.join(items) if all(items) else None


def _numbers(text: str) -> str | None:
    items = [_number(item) for item in text.split(',')]
    return ', '.join(item for item in items if item) if all(items) else None


_ANSWER = re.compile(r'.*The answer is\s(.*)\..*', re.DOTALL)
_LIST = re.compile(r'.*The sorted list is\s*\[(.*)\].*', re.DOTALL)
_ALL = re.compile('(.*)', re.DOTALL)

NUMBER = Form('number', _ANSWER, _number)
WORD = Form('word', _ANSWER, _word)
WORDS = Form('list of words', _LIST, _words)
NUMBERS = Form('list of numbers', _LIST, _numbers)
WHOLE = Form('whole target', _ALL, lambda text: text or None)
