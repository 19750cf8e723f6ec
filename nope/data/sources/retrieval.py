"""Synthetic retrieval documents for small models: a key hidden in filler, asked for repeatedly.

A document is a sequence of records of size + 1 bytes, size being the field `record_length`. With
the byte tokenizer the stream of tokens, cut into blocks for a training length of `size`, gives one
record a block.

A record is a prompt of `templates.BRIEF` with its answer, then further questions, each after some
filler and with the answer. It names one key only: with several, a model learns to read the nearest
one instead of the one that matches. It has no ending and is cut off in the middle of anything, and
hardly any has an EOS behind it: what always stands at the end of a block, a model without position
encoding learns to expect by the position, and beyond the training length it expects it everywhere.
"""

from __future__ import annotations

import dataclasses
import pathlib
import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from nope.data.sources.base import PART_BYTES, Source
from nope.data.splits import split_of
from nope.data.templates import BRIEF, KEYS

VERSION = 1
RECORDS = 50
DOCUMENTS = {'train': 800, 'validation': 4, 'test': 4}


@dataclasses.dataclass(frozen=True)
class Retrieval(Source):
    """Documents of records of `record_length` bytes, which are made on the spot."""

    kind: ClassVar[str] = 'retrieval'
    record_length: int

    @classmethod
    def from_section(
        cls, path: str, section: Mapping[str, Any], length: int | None, names: Mapping[str, str]
    ) -> Self:
        """As `Source.from_section`; a `record_length` of None stands for `length`, the training
        length of the run."""
        field = names.get('record_length', 'record_length')
        if path:
            raise ValueError(
                f'{names["source"]}: the kind retrieval takes no path, {path!r}; type "retrieval" '
                f'alone for records as long as the training length, else {field}={path} with it'
            )
        given = section.get('record_length')
        if given is None and length is not None:
            given, names = length, {**names, 'record_length': f'{field}, here the training length,'}
        return cls(given, names=names)  # type: ignore[arg-type]  # None is refused there

    def __post_init__(self) -> None:
        size = self.record_length
        if not isinstance(size, int) or isinstance(size, bool) or size < BRIEF.shortest:
            raise ValueError(
                f'{self.name("record_length")} is {size!r}; accepted: a whole number of at least '
                f'{BRIEF.shortest} bytes (a prompt without filler and its answer)'
            )

    def identity(self) -> dict[str, Any]:
        """Everything that the documents follow from."""
        return {
            'kind': self.kind,
            'version': VERSION,
            'bytes': self.record_length,
            'records': RECORDS,
            'documents': DOCUMENTS,
            'template': dataclasses.asdict(BRIEF),
        }

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> list[RetrievalPart]:
        """All documents in parts of one split each."""
        most = max(part_bytes // _document_bytes(self.record_length), 1)
        return [
            RetrievalPart(split, begin, min(begin + most, count), self.record_length)
            for split, count in DOCUMENTS.items()
            for begin in range(0, count, most)
        ]

    def describe(self) -> str:
        return f'synthetic retrieval prompts within {self.record_length} bytes'


def document(split: str, index: int, size: int) -> bytes:
    """Document `index` (from 0) of a split: ASCII, with its EOS 50 blocks of size + 1 tokens."""
    numbers = range(index * RECORDS, (index + 1) * RECORDS)
    return ''.join(record(split, number, size) for number in numbers)[:-1].encode('ascii')


def record(split: str, index: int, size: int) -> str:
    """Record `index` of a split: size + 1 characters, with a whole prompt and answer in `size`.

    The first prompt has from none up to as many repeats of the filler as fit with the answer,
    every number and every depth of the key as likely as any other; a coin decides after each
    filler before a further question whether there is another. No two splits share a key
    (`splits.split_of`), so they share no record.
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
        if split_of(key.encode()) == split:
            return key


def _up_to(draw: random.Random, most: int) -> int:
    """One of 0 .. most, from the only method whose numbers Python promises to keep."""
    return int(draw.random() * (most + 1))


def _heads(draw: random.Random) -> int:
    """Geometric draw: heads of a coin before it first shows tails."""
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


def _document_bytes(block_bytes: int) -> int:
    return RECORDS * (block_bytes + 1) - 1
