"""Synthetic documents that teach a small model to retrieve: a key hidden in filler, asked for
again and again.

A document is a sequence of records of size + 1 bytes. With the byte tokenizer the stream of
tokens, cut into blocks for a training length of `size`, gives one record a block.
A record is a prompt of `templates.BRIEF` with its answer, then further questions, each after
some filler and with the answer. It names one key only: with several, a model learns to read the
nearest one instead of the one that matches. It has no ending and is cut off in the middle of
anything, and hardly any has an EOS behind it: what always stands at the end of a block, a model
without position encoding learns to expect by the position, and beyond the training length it
expects it everywhere.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

from nope.data import folders
from nope.data.templates import BRIEF, KEYS

VERSION = 1
RECORDS = 50
DOCUMENTS = {'train': 800, 'validation': 4, 'test': 4}


def document(split: str, index: int, size: int) -> bytes:
    """Document `index` (from 0) of a split: ASCII, with its EOS 50 blocks of size + 1 tokens."""
    numbers = range(index * RECORDS, (index + 1) * RECORDS)
    return ''.join(record(split, number, size) for number in numbers)[:-1].encode('ascii')


def record(split: str, index: int, size: int) -> str:
    """Record `index` of a split: size + 1 characters, with a whole prompt and answer in `size`.

    The first prompt has from none up to as many repeats of the filler as fit with the answer,
    every number and every depth of the key as likely as any other; a coin decides after each
    filler before a further question whether there is another. No two splits share a key
    (`folders.split_of`), so they share no record.
    """
    draw = random.Random(f'{split} {index}')
    key = _draw_key(draw, split)
    answer = BRIEF.answer(key)
    fillers = _up_to(draw, (size - BRIEF.shortest) // len(BRIEF.filler))
    before = _up_to(draw, fillers)
    text = BRIEF.prompt(key, before, fillers - before) + answer
    while len(text) <= size:
        text += _heads(draw) * BRIEF.filler + BRIEF.question + answer
    return text[: size + 1]


def _draw_key(draw: random.Random, split: str) -> str:
    while True:
        key = str(KEYS.start + _up_to(draw, len(KEYS) - 1))
        if folders.split_of(key.encode()) == split:
            return key


def _up_to(draw: random.Random, most: int) -> int:
    """One of 0 .. most, from the only method whose numbers Python promises to keep."""
    return int(draw.random() * (most + 1))


def _heads(draw: random.Random) -> int:
    """How often a coin shows heads before it first shows tails."""
    count = 0
    while _up_to(draw, 1):
        count += 1
    return count


@dataclasses.dataclass(frozen=True)
class RetrievalPart:
    """The documents [begin, end) of a split, whose blocks are of block_bytes + 1 tokens."""

    split: str
    begin: int
    end: int
    block_bytes: int

    @property
    def size(self) -> int:
        return (self.end - self.begin) * _document_bytes(self.block_bytes)

    def documents(self) -> Iterator[tuple[str, bytes]]:
        for index in range(self.begin, self.end):
            yield self.split, document(self.split, index, self.block_bytes)


def list_parts(block_bytes: int, part_bytes: int) -> list[RetrievalPart]:
    """All documents in parts of about `part_bytes`, each of one split."""
    most = max(part_bytes // _document_bytes(block_bytes), 1)
    return [
        RetrievalPart(split, begin, min(begin + most, count), block_bytes)
        for split, count in DOCUMENTS.items()
        for begin in range(0, count, most)
    ]


def _document_bytes(block_bytes: int) -> int:
    return RECORDS * (block_bytes + 1) - 1


def identity(block_bytes: int) -> dict[str, Any]:
    """JSON-able: everything that the documents follow from."""
    return {
        'kind': 'retrieval',
        'version': VERSION,
        'bytes': block_bytes,
        'records': RECORDS,
        'documents': DOCUMENTS,
        'template': dataclasses.asdict(BRIEF),
    }
