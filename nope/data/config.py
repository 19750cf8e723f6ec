"""What to train on and evaluate on, as plain frozen values.

A source is a collection of documents. Where its documents come from, per `kind`:

    stdlib   the Python standard library's own sources, as a TensorFlow Datasets builder
    tfds     a data set that TensorFlow Datasets prepared before; `path` is its name (`pg19`,
             `lm1b/subwords8k`), looked up in the local TFDS folder, or its own folder
    text     `path` is one text file or a folder: one document per file
    jsonl    `path` is a file or folder of JSON lines, plain, .gz or .zst: one document per line
    parquet  `path` is a file or folder of Parquet files: one document per row
    shards   `path` is a folder that tools/prepare_data.py wrote
    retrieval
             prompts that hide a key and ask for it, made on the spot (`nope.data.retrieval`);
             `path` is a training length in bytes, and each training block is one prompt
"""

from __future__ import annotations

import dataclasses
import math

from nope.data import templates

KINDS = ('stdlib', 'tfds', 'text', 'jsonl', 'parquet', 'shards', 'retrieval')
SPLITS = ('train', 'validation', 'test')


@dataclasses.dataclass(frozen=True)
class SourceConfig:
    """One source of documents.

    kind: one of `KINDS`.
    path: file or folder; for `tfds` a data set's name or folder; empty for `stdlib`; for
        `retrieval` a training length in bytes, as '128'.
    field: the column that holds the text (jsonl, parquet, tfds).
    weight: share of the training sequences, relative to the other sources' weights.
    """

    kind: str = 'stdlib'
    path: str = ''
    field: str = 'text'
    weight: float = 1.0


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """A mixture of sources read through one tokenizer.

    sources: at least one.
    tokenizer: `bytes`, or the path of a SentencePiece `*.model` or a Hugging Face
        `tokenizer.json`.
    eval_source: index of the source that evaluation blocks come from (the paper mixes two
        sources in training and evaluates on the first one's validation split only).

    Raises ValueError naming the field for values outside of these.
    """

    sources: tuple[SourceConfig, ...] = (SourceConfig(),)
    tokenizer: str = 'bytes'
    eval_source: int = 0

    def __post_init__(self) -> None:
        if not self.sources:
            raise ValueError('data.sources is empty: name at least one source')
        for i, source in enumerate(self.sources):
            _check_source(f'data.sources[{i}]', source)
        if not 0 <= self.eval_source < len(self.sources):
            raise ValueError(
                f'data.eval_source={self.eval_source}: there are {len(self.sources)} sources, '
                f'so it must be between 0 and {len(self.sources) - 1}'
            )
        if not self.tokenizer:
            raise ValueError(
                "data.tokenizer is empty: give 'bytes' or the path of a *.model or *.json file"
            )


def _check_source(name: str, source: SourceConfig) -> None:
    if source.kind not in KINDS:
        raise ValueError(f'{name}.kind={source.kind!r}: must be one of {", ".join(KINDS)}')
    if source.kind == 'stdlib' and source.path:
        raise ValueError(f'{name}.path={source.path!r}: the kind stdlib takes no path')
    if source.kind != 'stdlib' and not source.path:
        raise ValueError(f'{name}.path is empty: the kind {source.kind} needs one')
    if source.kind == 'retrieval':
        _check_bytes(f'{name}.path', source.path)
    if source.kind in ('tfds', 'jsonl', 'parquet') and not source.field:
        raise ValueError(f'{name}.field is empty: name the column that holds the text')
    if not (math.isfinite(source.weight) and source.weight > 0):
        raise ValueError(f'{name}.weight={source.weight}: must be a finite number above 0')


def _check_bytes(field: str, path: str) -> None:
    least = templates.BRIEF.shortest
    if not (path.isascii() and path.isdigit() and not path.startswith('0') and int(path) >= least):
        raise ValueError(
            f'{field}={path!r}: the kind retrieval takes a training length in bytes, a whole '
            f'number of at least {least} (a prompt without filler and its answer)'
        )
