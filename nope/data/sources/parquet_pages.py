"""Pages of a Parquet column as their headers announce them, before anything is unpacked.

A header is a struct in Thrift's compact protocol: fields one after the other, each begun by a byte
with the distance to the field before it and its kind. Read are

    1 type, 2 uncompressed_page_size, 3 compressed_page_size, and of the structs 5
    (data_page_header), 7 (dictionary_page_header) and 8 (data_page_header_v2) field 1, num_values
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

DICTIONARY = 2
_FIRST_BYTES, _MOST_BYTES = 1 << 12, 1 << 24  # of a header; it may hold a value, as a statistic
_COUNTED = (5, 7, 8)
_MOST_DIGITS = 10  # of a number in base 128, which has 64 bits
_MOST_NESTED = 8
# Kinds of values.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_NUMBERS = (4, 5, 6)


class NoPageError(Exception):
    """Bytes that are no header of a page."""


class Page(NamedTuple):
    """is_dictionary: whether other pages refer to its values. values: how many it has, nulls among
    them. size: bytes of it unpacked."""

    is_dictionary: bool
    values: int
    size: int


def pages(file: BinaryIO, chunk: Any) -> Iterator[Page]:
    """The pages of a column chunk. chunk: its metadata, as pyarrow has them.

    NoPageError where what stands there is no sequence of pages.
    """
    place = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < place:
        place = chunk.dictionary_page_offset
    end, found = place + chunk.total_compressed_size, 0
    while place < end and found < chunk.num_values:
        header, size = _header(file, place)
        counts = [header[field].get(1) for field in _COUNTED if isinstance(header.get(field), dict)]
        numbers = [*counts[:1], *(header.get(field) for field in (1, 2, 3))]
        if len(numbers) < 4 or not all(type(n) is int and n >= 0 for n in numbers):
            raise NoPageError(f'no page at byte {place}')
        values, kind, unpacked, packed = numbers
        yield Page(kind == DICTIONARY, values, unpacked)
        place += size + packed
        found += 0 if kind == DICTIONARY else values


def _header(file: BinaryIO, place: int) -> tuple[dict[int, Any], int]:
    """(fields, bytes) of the header at `place`."""
    size = _FIRST_BYTES
    while True:
        file.seek(place)
        reader = _Reader(file.read(size))
        try:
            return reader.struct(), reader.place
        except IndexError as error:
            if size >= _MOST_BYTES or len(reader.data) < size:
                raise NoPageError(f'no page at byte {place}') from error
        size *= 8


class _Reader:
    """Values one after the other. IndexError at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _MOST_NESTED:
            raise NoPageError('a page header is nested too deep')
        fields: dict[int, Any] = {}
        number = 0
        while (byte := self._byte()) != 0:
            number = number + (byte >> 4) if byte >> 4 else self._number()
            fields[number] = self._value(byte & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _NUMBERS:
            return self._number()
        if kind in (_BYTE, _DOUBLE, _BINARY):
            self._skip({_BYTE: 1, _DOUBLE: 8}.get(kind) or self._unsigned())
            return None
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise NoPageError('a page header has a field that none has')

    def _byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def _skip(self, size: int) -> None:
        self.place += size
        if self.place > len(self.data):
            raise IndexError

    def _unsigned(self) -> int:
        value = 0
        for digit in range(_MOST_DIGITS):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * digit)
            if not byte & 0x80:
                return value
        raise NoPageError('a page header has a number without end')

    def _number(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
