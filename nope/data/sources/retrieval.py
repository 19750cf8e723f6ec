"""Synthetic retrieval documents for small models: a key hidden in hay, asked for repeatedly.

A document is a sequence of records (`retrieval_records.py`) of size + 1 tokens, size being the
field `record_length`; with the byte tokenizer a token is a byte. The stream of tokens, cut into
blocks for a training length of `size`, gives one record a block. Hardly any has an EOS behind it.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from nope.data.sources.base import PART_BYTES, CorpusPart, Source, of_split
from nope.data.sources.retrieval_records import longer, record, shortest
from nope.data.sources.stdlib import Stdlib
from nope.data.templates import BRIEF, BRIEF_NAMED, FILLER, HAYSTACKS, NAMES, TEXT
from nope.data.tokenizers import load_tokenizer

BYTES = 'bytes'
OPTIONS = ('needles', 'haystacks', 'tokenizer')
VERSION = 1
RECORDS = 50
DOCUMENTS = {'train': 800, 'validation': 4, 'test': 4}
_HAYSTACKS = ((FILLER,), (TEXT,), HAYSTACKS)


@dataclasses.dataclass(frozen=True)
class Retrieval(Source):
    """Documents of records of `record_length` tokens, which are made on the spot.

    needles: most keys of a record, 1 to 26. haystacks: hay of a record, each as likely: 'filler' or
    'text'. Text is the ASCII of `Stdlib` in the same split. tokenizer: that of the run, by its name
    or file; with another one than bytes documents are token ids, and the hay is filler.
    """

    kind: ClassVar[str] = 'retrieval'
    record_length: int
    needles: int = 1
    haystacks: tuple[str, ...] = (FILLER,)
    tokenizer: str = BYTES

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
        own = {name: section[name] for name in OPTIONS if name in section}
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
        if self.tokenizer != BYTES and self._in_text:
            raise ValueError(
                f'{self.name("haystacks")} is {hay!r}; accepted with the tokenizer '
                f'{self.tokenizer!r}: {(FILLER,)}'
            )
        size, least = self.record_length, shortest(most) if self.tokenizer == BYTES else 1
        if not isinstance(size, int) or isinstance(size, bool) or size < least:
            of_keys = '' if most == 1 else f' of {self.name("needles")} = {most} keys'
            raise ValueError(
                f'{self.name("record_length")} is {size!r}; accepted: a whole number of at least '
                f'{least} (a prompt{of_keys} without filler and its answer)'
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
            **self._of_tokens,
        }

    @property
    def _of_tokens(self) -> dict[str, Any]:
        """Part of the identity where records are measured in other tokens than bytes."""
        if self.tokenizer == BYTES:
            return {}
        return {'tokenizer': load_tokenizer(self.tokenizer, self.name('tokenizer')).fingerprint}

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
        unit = 'bytes' if self.tokenizer == BYTES else 'tokens'
        return f'synthetic retrieval prompts{keys}{hay} within {self.record_length} {unit}'

    def document(self, split: str, index: int, text: str = '') -> bytes | np.ndarray:
        """Document `index` (from 0) of a split, with its EOS 50 blocks of record_length + 1 tokens:
        ASCII for the byte tokenizer, else ids, int32. text: that of the split, for the haystack
        'text'. ValueError where a record has no room for a prompt."""
        numbers = range(index * RECORDS, (index + 1) * RECORDS)
        if self.tokenizer == BYTES:
            how = (self.record_length, self.needles, self.haystacks, text)
            return ''.join(record(split, number, *how) for number in numbers)[:-1].encode('ascii')
        loaded = _loaded(self.tokenizer, self.name('tokenizer'))

        def measure(text: str) -> int:
            return len(loaded.encode(text))

        found = []
        for number in numbers:
            try:
                made = longer(split, number, self.record_length, measure, self.needles)
            except ValueError as error:
                rule = f'is {self.record_length} tokens; {error}'
                raise ValueError(f'{self.name("record_length")} {rule}') from error
            found.append(loaded.encode(made)[: self.record_length + 1])
        return np.concatenate(found)[:-1]

    @property
    def _in_text(self) -> bool:
        return TEXT in self.haystacks

    @property
    def _text(self) -> Stdlib:
        return Stdlib(names=self.names)


# Loading a tokenizer takes longer than a document of its tokens.
_loaded = functools.lru_cache(maxsize=1)(load_tokenizer)


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

    def documents(self) -> Iterator[tuple[str, bytes | np.ndarray]]:
        parts = of_split(self.text, self.split)
        read = (found for part in parts for _, found in part.documents())
        text = ''.join(bytes(found).decode('ascii', 'ignore') for found in read)
        for index in range(self.begin, self.end):
            yield self.split, self.source.document(self.split, index, text)


def _document_bytes(block_bytes: int) -> int:
    return RECORDS * (block_bytes + 1) - 1
