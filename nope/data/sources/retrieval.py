"""Synthetic retrieval documents for small models: a key hidden in hay, asked for repeatedly.

A document is a sequence of records (`retrieval_records.py`) of size + 1 bytes, size being the field
`record_length`. With the byte tokenizer the stream of tokens, cut into blocks for a training length
of `size`, gives one record a block. Hardly any has an EOS behind it.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from nope.data.sources.base import PART_BYTES, CorpusPart, Source, of_split
from nope.data.sources.retrieval_records import record, shortest
from nope.data.sources.stdlib import Stdlib
from nope.data.templates import BRIEF, BRIEF_NAMED, FILLER, HAYSTACKS, NAMES, TEXT

VERSION = 1
RECORDS = 50
DOCUMENTS = {'train': 800, 'validation': 4, 'test': 4}
_HAYSTACKS = ((FILLER,), (TEXT,), HAYSTACKS)


@dataclasses.dataclass(frozen=True)
class Retrieval(Source):
    """Documents of records of `record_length` bytes, which are made on the spot.

    needles: most keys of a record, 1 to 26. haystacks: hay of a record, each as likely: 'filler' or
    'text'. Text is the ASCII of `Stdlib` in the same split.
    """

    kind: ClassVar[str] = 'retrieval'
    record_length: int
    needles: int = 1
    haystacks: tuple[str, ...] = (FILLER,)

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
        own = {name: section[name] for name in ('needles', 'haystacks') if name in section}
        return cls(given, **own, names=names)  # type: ignore[arg-type]  # None is refused there

    def __post_init__(self) -> None:
        most = self.needles
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= len(NAMES):
            raise ValueError(
                f'{self.name("needles")} is {most!r}; accepted: a whole number from 1 to '
                f'{len(NAMES)}'
            )
        hay = self.haystacks
        if hay not in _HAYSTACKS:
            accepted = ', '.join(map(repr, _HAYSTACKS))
            raise ValueError(f'{self.name("haystacks")} is {hay!r}; accepted: {accepted}')
        size, least = self.record_length, shortest(most)
        if not isinstance(size, int) or isinstance(size, bool) or size < least:
            of_keys = '' if most == 1 else f' of {self.name("needles")} = {most} keys'
            raise ValueError(
                f'{self.name("record_length")} is {size!r}; accepted: a whole number of at least '
                f'{least} bytes (a prompt{of_keys} without filler and its answer)'
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
            'needles': self.needles,
            'named': dataclasses.asdict(BRIEF_NAMED),
            'names': NAMES,
            'haystacks': list(self.haystacks),
            'text': self._text.identity() if self._in_text else None,
        }

    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> list[RetrievalPart]:
        """All documents in parts of one split each."""
        most = max(part_bytes // _document_bytes(self.record_length), 1)
        text = tuple(self._text.list_parts(cache)) if self._in_text else ()
        return [
            RetrievalPart(split, begin, min(begin + most, count), self, text)
            for split, count in DOCUMENTS.items()
            for begin in range(0, count, most)
        ]

    def describe(self) -> str:
        keys = '' if self.needles == 1 else f' of 1 to {self.needles} keys'
        hay = f' in {" or ".join(self.haystacks)}' if self._in_text else ''
        return f'synthetic retrieval prompts{keys}{hay} within {self.record_length} bytes'

    def document(self, split: str, index: int, text: str = '') -> bytes:
        """Document `index` (from 0) of a split: ASCII, with its EOS 50 blocks of record_length + 1
        tokens. text: that of the split, for the haystack 'text'."""
        how = (self.record_length, self.needles, self.haystacks, text)
        numbers = range(index * RECORDS, (index + 1) * RECORDS)
        return ''.join(record(split, number, *how) for number in numbers)[:-1].encode('ascii')

    @property
    def _in_text(self) -> bool:
        return TEXT in self.haystacks

    @property
    def _text(self) -> Stdlib:
        return Stdlib(names=self.names)


@dataclasses.dataclass(frozen=True)
class RetrievalPart:
    """The documents [begin, end) of a split of `source`, in `text`, that of every split."""

    split: str
    begin: int
    end: int
    source: Retrieval
    text: Sequence[CorpusPart] = ()

    @property
    def size(self) -> int:
        return (self.end - self.begin) * _document_bytes(self.source.record_length)

    def documents(self) -> Iterator[tuple[str, bytes]]:
        parts = of_split(self.text, self.split)
        read = (found for part in parts for _, found in part.documents())
        text = ''.join(found.decode('ascii', 'ignore') for found in read)
        for index in range(self.begin, self.end):
            yield self.split, self.source.document(self.split, index, text)


def _document_bytes(block_bytes: int) -> int:
    return RECORDS * (block_bytes + 1) - 1
