"""Base class of data sources: documents in parts, their content identity, their name for people."""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from nope.data.sources import folders, left_out, suffixes

PART_BYTES = 64 << 20
MAX_LINE_BYTES = 64 << 20


class CorpusPart(Protocol):
    """Documents that are read and tokenised in one go, by one process.

    A corpus is always the same sequence of parts, however many processes work on it. Parts
    are picklable and hold no text.
    """

    @property
    def size(self) -> int:
        """Bytes to read, as far as they are known beforehand (for a progress bar)."""
        ...

    def documents(self) -> Iterable[tuple[str, bytes | np.ndarray]]:
        """(split, text) of each document, in a fixed order; split: one of `splits.SPLITS`. Text is
        bytes, or ids, int32, of the tokenizer that its source names."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source(abc.ABC):
    """A collection of documents.

    A kind of source derives from it. Its fields are what a config may say of it: `path`, if it has
    one, from the short form 'kind:path', any other from the field of the same name in the config's
    `data` section. Its constructor raises ValueError for a value that does not fit.

    names: field -> what the user typed it as, for messages; 'source' stands for the short form.
    """

    kind: ClassVar[str]
    names: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_section(
        cls, path: str, section: Mapping[str, Any], length: int | None, names: Mapping[str, str]
    ) -> Self:
        """The source that 'kind:path' and the other fields of its section describe.

        length: training length of the run in tokens, for kinds that depend on it; None for no run.
        names: as the attribute. ValueError for a path where the kind has none,
        and for a field that it needs and the section has not.
        """
        fields = {field.name for field in dataclasses.fields(cls)} - {'names'}
        if path and 'path' not in fields:
            raise ValueError(f'{names["source"]}: the kind {cls.kind} takes no path, {path!r}')
        values = {field: section[field] for field in fields - {'path'} if field in section}
        if 'path' in fields:
            values['path'] = path
        for field in dataclasses.fields(cls):
            if field.name in fields - values.keys() and field.default is dataclasses.MISSING:
                raise ValueError(
                    f'{names["source"]}: the kind {cls.kind} needs the field {field.name}, which '
                    'its section has not'
                )
        return cls(**values, names=names)

    def name(self, field: str = 'source') -> str:
        """Path of a field as the user typed it: 'data.mixture[1]', '--path'."""
        return self.names.get(field, f'data.{field}')

    @abc.abstractmethod
    def identity(self) -> dict[str, Any]:
        """JSON-able identity of the content, `kind` among it, the same wherever it lies.

        Raises FileNotFoundError, PermissionError or ValueError naming the field at fault.
        """

    @abc.abstractmethod
    def list_parts(self, cache: pathlib.Path, part_bytes: int = PART_BYTES) -> Sequence[CorpusPart]:
        """The documents in a fixed sequence of parts, most of at most `part_bytes` of text
        (`grouped` puts small ones together).

        cache: folder for what has to be built first. Errors as `identity`.
        """

    @abc.abstractmethod
    def describe(self) -> str:
        """A few words for captions and messages."""

    def prepared(self) -> pathlib.Path | None:
        """The folder of its token shards, where it is tokenised already; such a source has no
        parts."""
        return None

    def walked(self) -> pathlib.Path | None:
        """The path below which any text would be read; None where there is none."""
        return None

    def check_outside(self, folder: pathlib.Path) -> None:
        """ValueError where a folder that is to be written lies in the corpus, which would grow by
        its files."""
        whole = self.walked()
        if whole is not None:
            folders.check_outside(self.name(), whole, folder)

    def check_limit(self, limit: object) -> None:
        """ValueError unless `max_line_bytes` is a number of bytes."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            name = self.name('max_line_bytes')
            raise ValueError(f'{name} is {limit!r}; accepted: a whole number from 1')

    def need(self, field: str, value: str, what: str) -> None:
        """ValueError where a field of text is empty. what: what belongs there."""
        if not value:
            raise ValueError(f'{self.name(field)}: the kind {self.kind} needs {what}')


@dataclasses.dataclass(frozen=True)
class FileSource(Source):
    """A file, or those of a folder whose names end in one of `endings`."""

    path: str
    endings: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        self.need('source', self.path, f'a file or folder, as in {self.kind}:FOLDER')

    def identity(self) -> dict[str, Any]:
        return folders.identity(self.kind, pathlib.Path(self.path), self._files()[0])

    def describe(self) -> str:
        return folders.name_of(self.path)

    def _files(self) -> tuple[list[str], dict[str, str]]:
        """As `folders.list_corpus`, with its errors."""
        return folders.list_corpus(self.name(), pathlib.Path(self.path), self.refusal)

    def refusal(self, path: pathlib.Path) -> str | None:
        """As `folders.Refusal`."""
        return None if suffixes.ends_in(path, self.endings) else left_out.SUFFIX


@dataclasses.dataclass(frozen=True)
class _OfSplit:
    """The documents of a part that belong to one split."""

    part: CorpusPart
    split: str

    @property
    def size(self) -> int:
        return self.part.size

    def documents(self) -> Iterator[tuple[str, bytes | np.ndarray]]:
        return (found for found in self.part.documents() if found[0] == self.split)


@dataclasses.dataclass(frozen=True)
class _Group:
    """Consecutive parts in one."""

    parts: tuple[CorpusPart, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def documents(self) -> Iterator[tuple[str, bytes | np.ndarray]]:
        for part in self.parts:
            yield from part.documents()


def grouped(parts: Iterable[CorpusPart], part_bytes: int) -> list[CorpusPart]:
    """Consecutive parts together up to `part_bytes`; larger ones stay alone."""
    found: list[CorpusPart] = []
    group: list[CorpusPart] = []
    size = 0
    for part in parts:
        if group and size + part.size > part_bytes:
            found.append(_Group(tuple(group)))
            group, size = [], 0
        group.append(part)
        size += part.size
    return [*found, _Group(tuple(group))] if group else found


def of_split(parts: Sequence[CorpusPart], split: str) -> list[CorpusPart]:
    """One split of a corpus; parts that say they belong to another one are left out."""
    return [
        _OfSplit(part, split) for part in parts if getattr(part, 'split', None) in (None, split)
    ]
