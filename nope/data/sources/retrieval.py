"""Synthetic retrieval documents for small models: a key hidden in filler, asked for repeatedly.

A document is a sequence of records of size + 1 bytes, size being the field `record_length`. With
the byte tokenizer the stream of tokens, cut into blocks for a training length of `size`, gives one
record a block.

A record is a prompt of `templates.BRIEF` with its answer, then further questions, each after some
filler and with the answer. It states one key only: of several without names, a model learns to read
the nearest one instead of the one that matches. With the field `needles` above 1 a record states 1
up to so many keys, every number as likely: one alone as above, several by their names
(`templates.BRIEF_NAMED`), and every question asks for any one of them. A record has no ending and
is cut off in the middle of anything, and hardly any has an EOS behind it: what always stands at the
end of a block, a model without position encoding learns to expect by the position, and beyond the
training length it expects it everywhere.
"""

from __future__ import annotations

import dataclasses
import pathlib
import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from nope.data.sources.base import PART_BYTES, Source
from nope.data.splits import split_of
from nope.data.templates import BRIEF, BRIEF_NAMED, KEYS, NAMES, shortest_named

VERSION = 1
RECORDS = 50
DOCUMENTS = {'train': 800, 'validation': 4, 'test': 4}


@dataclasses.dataclass(frozen=True)
class Retrieval(Source):
    """Documents of records of `record_length` bytes, which are made on the spot.

    needles: keys that a record states at most, 1 to 26.
    """

    kind: ClassVar[str] = 'retrieval'
    record_length: int
    needles: int = 1

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
        needles = section.get('needles', 1)
        return cls(given, needles, names=names)  # type: ignore[arg-type]  # None is refused there

    def __post_init__(self) -> None:
        most = self.needles
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= len(NAMES):
            raise ValueError(
                f'{self.name("needles")} is {most!r}; accepted: a whole number from 1 to '
                f'{len(NAMES)}'
            )
        size, least = self.record_length, shortest(most)
        if not isinstance(size, int) or isinstance(size, bool) or size < least:
            of_keys = '' if most == 1 else f' of {self.name("needles")} = {most} keys'
            raise ValueError(
                f'{self.name("record_length")} is {size!r}; accepted: a whole number of at least '
                f'{least} bytes (a prompt{of_keys} without filler and its answer)'
            )

    def identity(self) -> dict[str, Any]:
        """Everything that the documents follow from."""
        # Runs were identified before there were records of several keys.
        template = dataclasses.asdict(BRIEF_NAMED)
        named = {'needles': self.needles, 'named': template, 'names': NAMES}
        return {
            'kind': self.kind,
            'version': VERSION,
            'bytes': self.record_length,
            'records': RECORDS,
            'documents': DOCUMENTS,
            'template': dataclasses.asdict(BRIEF),
            **(named if self.needles > 1 else {}),
        }

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> list[RetrievalPart]:
        """All documents in parts of one split each."""
        most = max(part_bytes // _document_bytes(self.record_length), 1)
        return [
            RetrievalPart(split, begin, min(begin + most, count), self.record_length, self.needles)
            for split, count in DOCUMENTS.items()
            for begin in range(0, count, most)
        ]

    def describe(self) -> str:
        keys = '' if self.needles == 1 else f' of 1 to {self.needles} keys'
        return f'synthetic retrieval prompts{keys} within {self.record_length} bytes'


def shortest(needles: int) -> int:
    """Bytes of the longest prompt without filler of up to `needles` keys, and its answer."""
    return BRIEF.shortest if needles == 1 else shortest_named(BRIEF_NAMED, needles)


def document(split: str, index: int, size: int, needles: int = 1) -> bytes:
    """Document `index` (from 0) of a split: ASCII, with its EOS 50 blocks of size + 1 tokens."""
    numbers = range(index * RECORDS, (index + 1) * RECORDS)
    return ''.join(record(split, number, size, needles) for number in numbers)[:-1].encode('ascii')


def record(split: str, index: int, size: int, needles: int = 1) -> str:
    """Record `index` of a split: size + 1 characters, with a whole prompt and answer in `size`.

    The first prompt has from none up to as many repeats of the filler as fit with the answer,
    every number and every depth of each key as likely as any other; a coin decides after each
    filler before a further question whether there is another; before one for a named key there are
    half as many. It states one key, or 1 to `needles` named ones. No two splits share a key
    (`splits.split_of`), so they share no record.
    """
    if needles == 1:
        return _of_one_key(random.Random(f'{split} {index}'), split, size)
    draw = random.Random(f'{split} {index} of {needles}')
    count = 1 + _up_to(draw, needles - 1)
    if count == 1:
        return _of_one_key(draw, split, size)
    return _of_named_keys(draw, split, size, count)


def _of_one_key(draw: random.Random, split: str, size: int) -> str:
    key = _draw_key(draw, split)
    answer = BRIEF.answer(key)
    fillers = _up_to(draw, (size - BRIEF.shortest) // len(BRIEF.filler))
    before = _up_to(draw, fillers)
    text = BRIEF.prompt(key, before, fillers - before) + answer
    while len(text) <= size:
        text += _heads(draw) * BRIEF.filler + BRIEF.question + answer
    return text[: size + 1]


def _of_named_keys(draw: random.Random, split: str, size: int, count: int) -> str:
    """A record of `count` keys; no two share a name or a key."""
    keys: dict[str, str] = {}
    while len(keys) < count:
        name, key = NAMES[_up_to(draw, len(NAMES) - 1)], _draw_key(draw, split)
        if name not in keys and key not in keys.values():
            keys[name] = key
    names = list(keys)
    fillers = _up_to(draw, (size - shortest(count)) // len(BRIEF_NAMED.filler))
    stated: list[list[str]] = [[] for _ in range(fillers + 1)]
    for name, key in keys.items():
        stated[_up_to(draw, fillers)].append(BRIEF_NAMED.state(key, name))
    text = BRIEF_NAMED.task + BRIEF_NAMED.filler.join(map(''.join, stated))
    text += _question(names[_up_to(draw, count - 1)], keys)
    while len(text) <= size:
        # Questions are what teaches names: most follow at once.
        text += _heads(draw) // 2 * BRIEF_NAMED.filler
        text += _question(names[_up_to(draw, count - 1)], keys)
    return text[: size + 1]


def _question(name: str, keys: Mapping[str, str]) -> str:
    """A question for one of several keys, with its answer."""
    return BRIEF_NAMED.ask(name) + BRIEF_NAMED.answer(keys[name])


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
    needles: int = 1

    @property
    def size(self) -> int:
        return (self.end - self.begin) * _document_bytes(self.block_bytes)

    def documents(self) -> Iterator[tuple[str, bytes]]:
        for index in range(self.begin, self.end):
            yield self.split, document(self.split, index, self.block_bytes, self.needles)


def _document_bytes(block_bytes: int) -> int:
    return RECORDS * (block_bytes + 1) - 1
