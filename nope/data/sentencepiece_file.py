"""Check that a SentencePiece model file is whole.

The file is a protocol buffer: fields one after the other, each with its number and length, so that
a file cut between two of them is one with fewer. The library reads such a file without a word, with
pieces missing or without the normalisation of the text.
"""

from __future__ import annotations

PIECES, TRAINER, NORMALIZER = 1, 2, 3
_KNOWN = frozenset({PIECES, TRAINER, NORMALIZER, 4, 5})  # 4: self-test data; 5: denormaliser
_EXTENSIONS = 200
_WITH_LENGTH = 2
_MOST_DIGITS = 10  # of a number in base 128, which has 64 bits


def check(content: bytes) -> None:
    """ValueError unless the file is a sequence of a model's fields to its very end, with pieces,
    and the trainer's and the normaliser's fields, which are written behind them."""
    found: set[int] = set()
    place = 0
    while place < len(content):
        key, place = _number(content, place)
        field, kind = key >> 3, key & 7
        if kind != _WITH_LENGTH or not (field in _KNOWN or field >= _EXTENSIONS):
            raise ValueError(f'no field of a model at byte {place}')
        size, place = _number(content, place)
        place += size
        found.add(field)
    if place > len(content):
        raise ValueError('it ends in the middle of a field')
    missing = {PIECES: 'pieces', TRAINER: 'trainer', NORMALIZER: 'normalizer'}
    for field, name in missing.items():
        if field not in found:
            raise ValueError(f'it has no {name} field; it may be cut short')


def _number(content: bytes, place: int) -> tuple[int, int]:
    """(value, place behind it) of a number in base 128, the lowest digit first."""
    value = 0
    for digit, byte in enumerate(content[place : place + _MOST_DIGITS]):
        value |= (byte & 0x7F) << (7 * digit)
        if not byte & 0x80:
            return value, place + digit + 1
    if place + _MOST_DIGITS <= len(content):
        raise ValueError(f'a number without end at byte {place}')
    raise ValueError('it ends in the middle of a field')
