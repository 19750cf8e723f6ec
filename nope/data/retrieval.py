"""Synthetic documents that teach a small model to retrieve: a key hidden in filler, asked for
again and again.

A document is a prompt of `templates.BRIEF` with its answer, then further questions, each after
some filler and with the answer, up to its size, where it is cut. It names one key only: with
several, a model learns to read the nearest one instead of the one that matches. One document
and its EOS are a training block of as many bytes, so that every block begins with a prompt.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

from nope.data import folders
from nope.data.templates import BRIEF, KEYS

VERSION = 1
DOCUMENTS = {'train': 40_000, 'validation': 200, 'test': 200}


def document(split: str, index: int, size: int) -> bytes:
    """Document `index` (from 0) of a split: `size` bytes of ASCII.

    The first prompt has from none up to as many repeats of the filler as fit with the answer,
    every number and every depth of the key as likely as any other, and so has the filler before
    each further question. No two splits share a key (`folders.split_of`), so they share no
    document.
    """
    draw = random.Random(f'{split} {index}')
    key = _draw_key(draw, split)
    answer = BRIEF.answer(key)
    fillers = _up_to(draw, (size - BRIEF.shortest) // len(BRIEF.filler))
    before = _up_to(draw, fillers)
    text = BRIEF.prompt(key, before, fillers - before) + answer
    while len(text) < size:
        room = size - len(text) - len(BRIEF.question) - len(answer)
        fillers = _up_to(draw, max(room, 0) // len(BRIEF.filler))
        text += fillers * BRIEF.filler + BRIEF.question + answer
    return text[:size].encode('ascii')


def _draw_key(draw: random.Random, split: str) -> str:
    while True:
        key = str(KEYS.start + _up_to(draw, len(KEYS) - 1))
        if folders.split_of(key.encode()) == split:
            return key


def _up_to(draw: random.Random, most: int) -> int:
    """One of 0 .. most, from the only method whose numbers Python promises to keep."""
    return int(draw.random() * (most + 1))


@dataclasses.dataclass(frozen=True)
class RetrievalPart:
    """The documents [begin, end) of a split, of `document_bytes` each."""

    split: str
    begin: int
    end: int
    document_bytes: int

    @property
    def size(self) -> int:
        return (self.end - self.begin) * self.document_bytes

    def documents(self) -> Iterator[tuple[str, bytes]]:
        for index in range(self.begin, self.end):
            yield self.split, document(self.split, index, self.document_bytes)


def list_parts(document_bytes: int, part_bytes: int) -> list[RetrievalPart]:
    """All documents in parts of about `part_bytes`, each of one split."""
    most = max(part_bytes // document_bytes, 1)
    return [
        RetrievalPart(split, begin, min(begin + most, count), document_bytes)
        for split, count in DOCUMENTS.items()
        for begin in range(0, count, most)
    ]


def identity(document_bytes: int) -> dict[str, Any]:
    """JSON-able: everything that the documents follow from."""
    return {
        'kind': 'retrieval',
        'version': VERSION,
        'bytes': document_bytes,
        'documents': DOCUMENTS,
        'template': dataclasses.asdict(BRIEF),
    }
