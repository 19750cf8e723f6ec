"""Sentences of English prose, by rule."""

from __future__ import annotations

import re

# Straight and curly ones.
_OPENING = '("\'[\u201c\u2018'
_CLOSING = ')"\'\\]\u201d\u2019'
_END = re.compile(rf'([.!?]+)([{_CLOSING}]*)\s+(?=\S)')
_WORD = re.compile(rf'[^\s{re.escape(_OPENING)}]*$')

# Not the end of a sentence, with the point behind; single letters are not either.
ABBREVIATIONS = frozenset(
    word
    for line in (
        'mr mrs ms dr prof st jr sr vs etc inc ltd co corp no fig vol ed eds al cf ca approx',
        'dept gen gov hon rev sen rep lt col sgt capt e.g i.e a.m p.m u.s u.k ph.d',
        'jan feb mar apr jun jul aug sep sept oct nov dec',
    )
    for word in line.split()
)


def split(text: str) -> list[str]:
    """The sentences of a text, without the white space between them.

    One ends with '.', '!' or '?' and the quotes and brackets that close behind it, before white
    space, unless a lower-case letter follows, or the point belongs to an abbreviation or an
    initial.
    """
    found, begin = [], 0
    for end in _END.finditer(text):
        if text[end.end()].islower():
            continue
        if end[1] == '.' and not end[2]:
            match = _WORD.search(text, begin, end.start())
            word = match[0].lower() if match else ''
            initial = len(word) == 1 and word.isalpha() and word != 'i'
            if initial or word in ABBREVIATIONS:
                continue
        found.append(text[begin : end.end(2)])
        begin = end.end()
    if begin < len(text):
        found.append(text[begin:].rstrip())
    return found
