"""Words of numbers as the page and the trend show them; files keep those of their figures."""

from __future__ import annotations

import dataclasses
import re

from experiments.figures.claims.headline import Number

# Which of several cases decides, then a difference, then the case.
_HARDEST = re.compile(r'(highest|smallest|largest) (.+? less [^,]+)(?:, (.*))?')
_NAMES = (
    (r'\bAPE\b', 'sinusoidal'),
    (r', stdlib\b', ''),
    (r'largest multiplier - none', 'loss with the largest multiplier - with none'),
    (r'best uniform', 'the best multiplier'),
    (r'\buniform\b', 'one multiplier'),
    (r'^at the end, searched at, ', 'end of windows, searched at '),
    (r' -, HeadScale', ' - HeadScale'),
    (r', HeadScale searched at', ', searched at'),
    (r's ln i, searched .*, - s ln i \+ b, searched in the same way', 's ln i - s ln i + b'),
    (r'(?:the model|that) trained with (?:an )?', 'trained '),
    (r'\braw - fair\b', '1,000 steps - 200 steps'),
    (r'\((?:raw|fair): ', '('),
    (r'mean reciprocal rank', 'mean 1 / rank'),
    (r'without local - without', 'without local heads - without'),
    (r' - ', ' less '),
)


def plain(what: str) -> str:
    """'HeadScale less base at L, smallest: searched at 4 L' of 'smallest HeadScale - base at L,
    HeadScale searched at 4 L'."""
    for pattern, name in _NAMES:
        what = re.sub(pattern, name, what)
    found = _HARDEST.fullmatch(what)
    if found is None or 'the largest multiplier' in what:
        return what
    hardest, difference, case = found.groups()
    return f'{difference}, {hardest}{f": {case}" if case else ""}'


def worded(number: Number) -> Number:
    """The number in plain words."""
    return dataclasses.replace(number, what=plain(number.what))
