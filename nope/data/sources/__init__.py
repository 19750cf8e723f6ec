"""Data sources: one small file and one frozen class a kind.

A new one is a file here, derived from `Source`, and a line in `KINDS`; a config then names it
as 'kind' or 'kind:path' (nope/data/README.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nope import identity
from nope.data.sources.base import PART_BYTES, CorpusPart, Source, grouped, of_split
from nope.data.sources.jsonl import JsonLines
from nope.data.sources.parquet import Parquet
from nope.data.sources.retrieval import Retrieval
from nope.data.sources.shards import Shards
from nope.data.sources.stdlib import Stdlib
from nope.data.sources.text import Text
from nope.data.sources.tfds import Tfds

KINDS: dict[str, type[Source]] = {
    kind.kind: kind for kind in (Stdlib, Tfds, Text, JsonLines, Parquet, Shards, Retrieval)
}

__all__ = [
    'KINDS',
    'PART_BYTES',
    'CorpusPart',
    'JsonLines',
    'Parquet',
    'Retrieval',
    'Shards',
    'Source',
    'Stdlib',
    'Text',
    'Tfds',
    'execution_fields',
    'field_defaults',
    'grouped',
    'of_split',
    'parse',
]


def execution_fields() -> frozenset[str]:
    """Fields of sources that change no document."""
    return frozenset().union(*map(identity.execution_fields, KINDS.values()))


def field_defaults() -> dict[str, Any]:
    """Defaults of the fields of all kinds of sources, but for their paths and the tokenizer, which
    the run has; None for a field that has none."""
    fields = [field for kind in KINDS.values() for field in dataclasses.fields(kind)]
    return {
        field.name: None if field.default is dataclasses.MISSING else field.default
        for field in fields
        if field.name not in ('path', 'names', 'tokenizer')
    }


def parse(
    short: str, section: Mapping[str, Any], length: int | None, names: Mapping[str, str]
) -> Source:
    """The source that 'kind' or 'kind:path' and the other fields of its section describe.

    length, names: as `Source.from_section`, whose errors it has; ValueError for an unknown kind.
    """
    kind, _, path = short.partition(':')
    if kind not in KINDS:
        forms = [
            name + ':PATH' * any(field.name == 'path' for field in dataclasses.fields(known))
            for name, known in KINDS.items()
        ]
        raise ValueError(f'{names["source"]} is {short!r}; accepted: {", ".join(forms)}')
    return KINDS[kind].from_section(path, section, length, names)
