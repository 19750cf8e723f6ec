"""One door to every kind of raw source: its parts, its content identity, its name for people."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

from nope.data import (
    catalogue,
    digest,
    folders,
    json_lines,
    parquet_files,
    retrieval,
    shards,
    stdlib,
    text_files,
)
from nope.data.config import DataConfig, SourceConfig
from nope.data.tokenizers import load_tokenizer


def list_parts(
    name: str, source: SourceConfig, cache: pathlib.Path, part_bytes: int = folders.PART_BYTES
) -> Sequence[folders.Part]:
    """The documents of a raw source in a fixed sequence of parts.

    name: what error messages call the source, like `data.sources[0]`.
    cache: where the standard library's data set is built on first use.
    Raises FileNotFoundError, PermissionError or ValueError naming the field at fault.
    """
    path = pathlib.Path(source.path)
    if source.kind == 'text':
        return text_files.list_parts(name, path, part_bytes)
    if source.kind == 'jsonl':
        return json_lines.list_parts(name, path, source.field, part_bytes)
    if source.kind == 'parquet':
        return parquet_files.list_parts(name, path, source.field, part_bytes)
    if source.kind == 'tfds':
        folder = catalogue.find(name, source.path)
        return catalogue.list_parts(name, folder, source.field, part_bytes)
    if source.kind == 'stdlib':
        from nope.data import stdlib_sources  # takes a moment to import

        folder = stdlib_sources.build(cache)
        return catalogue.list_parts(name, folder, 'text', part_bytes)
    if source.kind == 'retrieval':
        return retrieval.list_parts(int(source.path), part_bytes)
    raise ValueError(f'{name}.kind={source.kind!r}: it is prepared already')


def source_identity(name: str, source: SourceConfig) -> dict[str, Any]:
    """JSON-able identity of a source's content, the same wherever it lies; errors as
    `list_parts`."""
    path = pathlib.Path(source.path)
    if source.kind == 'stdlib':
        return stdlib.identity()
    if source.kind == 'retrieval':
        return retrieval.identity(int(source.path))
    if source.kind == 'tfds':
        return catalogue.identity(catalogue.find(name, source.path), source.field)
    if source.kind == 'text':
        return folders.identity('text', path, text_files.list_names(name, path))
    if source.kind == 'jsonl':
        names = json_lines.list_names(name, path)
        return folders.identity('jsonl', path, names, field=source.field)
    if source.kind == 'parquet':
        names = parquet_files.list_names(name, path)
        return folders.identity('parquet', path, names, field=source.field)
    metadata = shards.read_metadata(name, path)
    content = {key: value for key, value in metadata.items() if key != 'description'}
    return {'kind': 'shards', 'digest': digest.of_json(content)}


def identity(config: DataConfig) -> dict[str, Any]:
    """What the data of a run is, for the run's content hash: the sources' content identities
    and weights and the tokenizer's fingerprint. Reads every source's files (see
    `digest.of_file`); holds no paths and no times. Errors as `list_parts`."""
    sources = []
    for i, source in enumerate(config.sources):
        weight = source.weight if len(config.sources) > 1 else 1.0
        content = source_identity(f'data.sources[{i}]', source)
        sources.append({**content, 'weight': weight})
    return {
        'sources': sources,
        'tokenizer': load_tokenizer(config.tokenizer).fingerprint,
        'eval_source': config.eval_source,
    }


def describe_source(source: SourceConfig) -> str:
    """A source's name for captions and messages."""
    if source.kind == 'stdlib':
        return 'Python standard library sources'
    if source.kind == 'retrieval':
        return f'synthetic retrieval prompts within {source.path} bytes'
    if source.kind == 'tfds':
        parts = pathlib.PurePath(source.path).parts
        return f'{"/".join(parts[-2:])} (TFDS)' if parts[0] == '/' else source.path
    return pathlib.PurePath(source.path).name


def describe(config: DataConfig) -> str:
    """The data in a few words: 'Python standard library sources, bytes'."""
    total = sum(source.weight for source in config.sources)
    names = [describe_source(source) for source in config.sources]
    if len(names) > 1:
        names = [
            f'{name} ({source.weight / total:.1%})'
            for name, source in zip(names, config.sources, strict=True)
        ]
    return f'{" + ".join(names)}, {pathlib.PurePath(config.tokenizer).name}'
