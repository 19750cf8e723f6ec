"""PCFG SET: string edits in prefix notation (Hupkes et al., arXiv 1908.08351).

    echo append copy Q10 E4 , shift K15 D8

Six functions take one string, four take two with a comma between; strings are words A1 to Z20.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence

Words = list[str]

UNARY: dict[str, Callable[[Words], Words]] = {
    'copy': lambda a: a,
    'reverse': lambda a: a[::-1],
    'shift': lambda a: a[1:] + a[:1],
    'swap_first_last': lambda a: a[-1:] + a[1:-1] + a[:1] if len(a) > 1 else a,
    'repeat': lambda a: a + a,
    'echo': lambda a: a + a[-1:],
}
BINARY: dict[str, Callable[[Words, Words], Words]] = {
    'append': lambda a, b: a + b,
    'prepend': lambda a, b: b + a,
    'remove_first': lambda a, b: b,
    'remove_second': lambda a, b: a,
}
FUNCTIONS = frozenset((*UNARY, *BINARY))
COMMA = ','
ALPHABET = tuple(f'{letter}{n}' for letter in string.ascii_uppercase for n in range(1, 21))

# Functions and words that a source and its string may have; the public data have 35 and 736.
MOST_FUNCTIONS, MOST_WORDS = 200, 100_000


def functions(source: str) -> int:
    """Number of functions of a source: its length on the axes of figures."""
    return sum(word in FUNCTIONS for word in source.split())


def interpret(source: str) -> str:
    """The string that a source describes.

    ValueError for a source that is not of the grammar, or too large.
    """
    words = source.split()
    if functions(source) > MOST_FUNCTIONS:
        raise ValueError(f'{functions(source)} functions; accepted: up to {MOST_FUNCTIONS}')
    value, at = _value(words, 0)
    if at < len(words):
        raise ValueError(f'{words[at]!r} (word {at + 1}) stands behind the end of the expression')
    return ' '.join(value)


def _value(words: Sequence[str], at: int) -> tuple[Words, int]:
    """The value of the expression that begins at a word, and the word behind it."""
    name = words[at] if at < len(words) else ''
    if name in UNARY:
        value, at = _value(words, at + 1)
        return _bounded(UNARY[name](value)), at
    if name in BINARY:
        first, at = _value(words, at + 1)
        if at >= len(words) or words[at] != COMMA:
            raise ValueError(f'{name} has no {COMMA!r} behind its first argument')
        second, at = _value(words, at + 1)
        return _bounded(BINARY[name](first, second)), at
    begin = at
    while at < len(words) and words[at] not in FUNCTIONS and words[at] != COMMA:
        at += 1
    if at == begin:
        raise ValueError(f'a string is missing at word {at + 1}')
    return list(words[begin:at]), at


def _bounded(value: Words) -> Words:
    if len(value) > MOST_WORDS:
        raise ValueError(f'its string has more than {MOST_WORDS} words')
    return value
