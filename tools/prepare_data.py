"""Tokenisation of a corpus into token shards, to train from on any number of machines.

    python tools/prepare_data.py --source=jsonl --path=corpus/ --tokenizer=tokenizer.model \\
        --out=shards/corpus --workers=16

Interrupted, the same command continues; the files do not depend on the number of workers. To
train from the shards, set data.sources to one of kind `shards` with the folder as its path.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
from typing import Any

from nope.data import SourceConfig, folders, prepare
from nope.data.config import KINDS, SPLITS, DataConfig


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    out = pathlib.Path(options.out)
    try:
        source = SourceConfig(options.source, options.path, options.field)
        DataConfig((source,), options.tokenizer)  # checks the fields
        with tempfile.TemporaryDirectory() as scratch:
            metadata = prepare.prepare(
                source,
                options.tokenizer,
                out,
                cache=pathlib.Path(scratch),
                workers=options.workers,
                part_bytes=options.part_mib << 20,
            )
    except (ValueError, OSError) as error:
        sys.exit(f'error: {error}')
    print(_summary(out, metadata))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = [kind for kind in KINDS if kind != 'shards']
    parser.add_argument('--source', choices=kinds, required=True, help='kind of the corpus')
    parser.add_argument('--path', default='', help='file, folder or TFDS name')
    parser.add_argument('--field', default='text', help='column of the text (jsonl, parquet, tfds)')
    parser.add_argument('--tokenizer', default='bytes', help="'bytes', *.model or tokenizer.json")
    parser.add_argument('--out', required=True, help='folder for the shards')
    parser.add_argument(
        '--workers',
        type=_positive,
        default=os.cpu_count() or 1,
        help='processes (default: all cores)',
    )
    parser.add_argument(
        '--part_mib',
        type=_positive,
        default=folders.PART_BYTES >> 20,
        help='MiB of text that a worker takes at a time and that a restart may repeat',
    )
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f'{text} is not above 0')
    return value


def _summary(out: pathlib.Path, metadata: dict[str, Any]) -> str:
    lines = [f'{out}: {metadata["description"]}, vocabulary of {metadata["vocab_size"]}']
    for split in SPLITS:
        entries = metadata['splits'][split]
        documents = sum(entry['documents'] for entry in entries)
        tokens = sum(entry['tokens'] for entry in entries)
        longest = max((entry['longest'] for entry in entries), default=0)
        lines.append(
            f'  {split:10} {documents:12,} documents {tokens:16,} tokens, longest {longest:,}'
        )
    return '\n'.join(lines)


if __name__ == '__main__':
    main()
