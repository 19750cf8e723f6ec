"""Symbol lists of copying, reversal and sorting: closed ones, and the paper's from T5's model."""

from __future__ import annotations

import itertools
import string
from collections.abc import Sequence

import numpy as np

from nope.data.tokenizers import SentencePieceTokenizer

ALPHANUMERIC = string.digits + string.ascii_lowercase + string.ascii_uppercase

# ASCII characters that the paper's lists try first; sorting's has no punctuation.
COPYING_FIRST = ALPHANUMERIC + '!$%&()*+,-./:;<=>'
SORTING_FIRST = ALPHANUMERIC

# No string of sorting's list has any of these: they would be taken for the list's own.
SORTING_WITHOUT = frozenset('()*+,-./:;<=>"\'\\^_`{|}~')

# Words of sources, targets and scratchpads, which no closed symbol is.
RESERVED = frozenset({'by', 'in', 'is', 're', 'out', 'the', 'comp', 'list', 'step', 'with'})

_REPEATS = 10


def closed(count: int) -> tuple[str, ...]:
    """`count` symbols that need no tokenizer file: digits, letters, then words of two, three, ...
    lower-case letters. Each is one word of `words.WordTokenizer`."""
    several = (
        ''.join(letters)
        for size in itertools.count(2)
        for letters in itertools.product(string.ascii_lowercase, repeat=size)
    )
    every = itertools.chain(ALPHANUMERIC, (word for word in several if word not in RESERVED))
    return tuple(itertools.islice(every, count))


def ranks(
    symbols: Sequence[str], length: int, rng: np.random.Generator, count: int
) -> list[list[int]]:
    """`count` rows of `length` ranks in `symbols`, uniform and with replacement."""
    return rng.integers(len(symbols), size=(count, length)).tolist()


def rows(
    symbols: Sequence[str], length: int, rng: np.random.Generator, count: int
) -> list[list[str]]:
    """`count` rows of `length` symbols, uniform and with replacement."""
    return [[symbols[rank] for rank in row] for row in ranks(symbols, length, rng, count)]


def of_model(
    tokenizer: SentencePieceTokenizer,
    count: int,
    first: str = COPYING_FIRST,
    without: frozenset[str] = frozenset(),
    reserved: frozenset[str] = frozenset(),
) -> tuple[str, ...]:
    """The first `count` strings that are single tokens of a SentencePiece model.

    First the characters `first`, then the pieces in the vocabulary's order without their
    word-boundary mark. Pieces with a character of `without` and those of `reserved` are left out. A
    string is a single token where ten of them, with blanks between, are ten tokens. The released
    code tries marked pieces with their mark and may have a string twice, as a piece with a mark and
    as one without; here each stands once. Pieces that stand for themselves alone (`</s>`) are no
    strings here. ValueError where the model has fewer.
    """
    processor = tokenizer.processor
    pieces = (processor.id_to_piece(i) for i in range(processor.vocab_size()))
    names = (piece.removeprefix('▁') for piece in pieces)
    found: dict[str, None] = {}
    allowed = (name for name in names if not without & set(name) and name not in reserved)
    for name in itertools.chain(first, allowed):
        if len(found) == count:
            break
        repeated = tokenizer.encode(' '.join([name] * _REPEATS))
        if name and name not in found and len(repeated) == _REPEATS:
            found[name] = None
    if len(found) < count:
        raise ValueError(
            f'symbols: the model of {tokenizer.vocab_size} pieces has {len(found)} single-token '
            f'strings; {count} are needed'
        )
    return tuple(found)
