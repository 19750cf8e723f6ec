"""Data of a run as a frozen value: a mixture of sources, or one synthetic task (`TaskData`)."""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from nope.data import sources
from nope.data.prefix import prefix_of
from nope.data.sources import Source, Stdlib
from nope.data.tasks.config import TaskData
from nope.data.tokenizers import Tokenizer, load_tokenizer
from nope.runtime.errors import FieldError

DEFAULT_SOURCE = 'stdlib'  # what `data.source` is where nobody chose it
DOCUMENTS = JOINED, APART = 'joined', 'apart'


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """A mixture of sources read through one tokenizer.

    sources: at least one.
    tokenizer: `bytes`, or the path of a SentencePiece `*.model` or a Hugging Face
        `tokenizer.json`.
    eval_source: index of the source that evaluation blocks come from (the paper mixes two
        sources in training and evaluates on the first one's validation split only).
    weights: share of the training sequences of each source, relative to the others'.
    documents: of a training sequence. 'joined': one text, in which attention crosses their
        boundaries; 'apart': each with its own attention and positions, as if it stood alone (see
        `Batch.of_documents`).
    bos: whether every sequence, of training and of evaluation, begins with the tokenizer's prefix
        (`nope.data.prefix`), as models expect that were trained with one.

    Raises ValueError naming the field for values outside of these.
    """

    sources: tuple[Source, ...] = (Stdlib(),)
    tokenizer: str = 'bytes'
    eval_source: int = 0
    weights: tuple[float, ...] = (1.0,)
    documents: str = JOINED
    bos: bool = False

    def __post_init__(self) -> None:
        for source, weight in zip(self.sources, self.weights, strict=True):
            if not (math.isfinite(weight) and weight > 0):
                raise ValueError(
                    f'{source.name()}: its weight is {weight}; it must be a finite number above 0'
                )
        name = self.sources[0].name
        if not 0 <= self.eval_source < len(self.sources):
            raise ValueError(
                f'{name("eval_source")} is {self.eval_source}; there are {len(self.sources)} '
                f'sources, so it must be between 0 and {len(self.sources) - 1}'
            )
        if not self.tokenizer:
            raise ValueError(
                f"{name('tokenizer')} is empty: give 'bytes', the path of a *.model or *.json "
                "file, or None for an imported model's own"
            )
        if self.documents not in DOCUMENTS:
            raise ValueError(
                f'{name("documents")} is {self.documents!r}; accepted: {", ".join(DOCUMENTS)}'
            )
        if not isinstance(self.bos, bool):
            raise ValueError(f'{name("bos")} is {self.bos!r}; accepted: True or False')
        if self.bos and self.documents == APART:
            raise ValueError(
                f'{name("bos")} is True; accepted: False where {name("documents")} is {APART!r}, '
                'whose documents begin anywhere in a sequence'
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of every source."""
        return tuple(source.kind for source in self.sources)

    @functools.cached_property
    def prefix(self) -> tuple[int, ...]:
        """Tokens in place of the first ones of every sequence. ValueError where there are none."""
        if not self.bos:
            return ()
        try:
            return prefix_of(load_tokenizer(self.tokenizer), True)
        except FieldError as error:
            name = self.sources[0].name
            raise ValueError(
                f'{name("bos")} is True; accepted: False, since {name("tokenizer")}='
                f'{self.tokenizer!r} has no BOS'
            ) from error

    @property
    def arrays(self) -> tuple[str, ...]:
        """Arrays of its batches besides tokens and targets (`Batch`)."""
        return () if self.documents == JOINED else ('weights', 'segments', 'positions')


def from_section(
    section: Mapping[str, Any],
    length: int | None = None,
    path: Callable[[str], str] = 'data.{}'.format,
) -> DataConfig:
    """The data that a config's section describes.

    section: `source`, a source's short form ('stdlib', 'text:FOLDER'), or `mixture`, several
        (short form, weight), in its place; the fields of the sources' kinds, and those of
        `DataConfig`. A field that is left out has its default.
    length: training length of the run in tokens (the longest of several), for sources that depend
        on it.
    path: field of the section -> what the user typed it as, for messages.
    Raises ValueError naming the field, also where the section has both a source and a mixture,
    which would hide it.
    """
    names = {field: path(field) for field in section}
    mixture = [
        (sources.parse(short, section, length, {**names, 'source': name}), weight)
        for name, short, weight in _mixture(section, path)
    ]
    own = {field.name for field in dataclasses.fields(DataConfig)} - {'sources', 'weights'}
    return DataConfig(
        sources=tuple(source for source, _ in mixture),
        weights=tuple(weight for _, weight in mixture),
        **{field: section[field] for field in section if field in own},
    )


def _mixture(
    section: Mapping[str, Any], path: Callable[[str], str]
) -> list[tuple[str, str, float]]:
    """(name for messages, short form, weight) of each source."""
    mixture, source = section.get('mixture', ()), section.get('source', DEFAULT_SOURCE)
    if not mixture:
        return [(path('source'), source, 1.0)]
    if source != DEFAULT_SOURCE:
        raise ValueError(
            f'{path("source")} is {source!r}, but {path("mixture")} = {mixture} takes its place; '
            f'give {path("mixture")}=() with it, or put it into the mixture'
        )
    entries = []
    for i, entry in enumerate(mixture):
        name = f'{path("mixture")}[{i}]'
        if not (isinstance(entry, list | tuple) and [type(e) for e in entry] in _PAIRS):
            raise ValueError(
                f"{name} is {entry!r}; accepted is a source and its weight, as in ('stdlib', 0.5)"
            )
        entries.append((name, entry[0], float(entry[1])))
    return entries


_PAIRS = ([str, float], [str, int])


RunData = DataConfig | TaskData


def identity(config: RunData) -> dict[str, Any]:
    """Identity of a run's data for its content hash, without paths and times.

    Text has the sources' content identities and weights and the tokenizer's fingerprint. Reads
    every source's files (see `digest.of_file`). Errors as `Source.identity`.
    """
    if isinstance(config, TaskData):
        return config.identity()
    alone = len(config.sources) == 1
    return {
        'sources': [
            {**source.identity(), 'weight': 1.0 if alone else weight}
            for source, weight in zip(config.sources, config.weights, strict=True)
        ],
        'tokenizer': load_tokenizer(config.tokenizer).fingerprint,
        'eval_source': config.eval_source,
        'documents': config.documents,
        'bos': config.bos,
    }


def tokenizer_of(config: RunData) -> Tokenizer:
    """The tokenizer that a run reads its data through."""
    if isinstance(config, TaskData):
        return config.load_tokenizer()
    return load_tokenizer(config.tokenizer)


def describe(config: RunData) -> str:
    """The data in a few words: 'Python standard library sources, bytes'."""
    if isinstance(config, TaskData):
        return config.describe()
    names = [source.describe() for source in config.sources]
    if len(names) > 1:
        total = sum(config.weights)
        names = [
            f'{name} ({weight / total:.1%})'
            for name, weight in zip(names, config.weights, strict=True)
        ]
    how = ' with BOS' if config.bos else ''
    how += ', documents apart' if config.documents == APART else ''
    return f'{" + ".join(names)}, {pathlib.PurePath(config.tokenizer).name}{how}'
