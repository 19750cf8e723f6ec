"""Tokenisation of a corpus into token shards, to train from on any number of machines.

    nope prepare --source=jsonl --path=corpus/ --tokenizer=tokenizer.model \\
        --out=shards/corpus --workers=16

Interrupted, the same command continues; the files do not depend on the number of workers. To
train from the shards: --config.data.source=shards:shards/corpus.
"""

from __future__ import annotations

from nope.runtime import door, paths, processors

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import pathlib
import tempfile

from experiments.cli import corpus, flags
from nope.data import SPLITS, prepare
from nope.data.sources import PART_BYTES


def main(arguments: list[str] | None = None) -> None:
    parser = _parser()
    options = parser.parse_args(arguments)
    with flags.ending(ValueError, OSError, stopped='stopped; the same command goes on from here'):
        source = corpus.source_of(options, parser)
        with tempfile.TemporaryDirectory() as scratch:
            metadata = prepare.prepare(
                source,
                options.tokenizer,
                options.out,
                cache=pathlib.Path(scratch),
                field='--tokenizer',
                workers=options.workers,
                part_bytes=options.part_mib << 20,
            )
    print(f'{options.out}: {metadata["description"]}, vocabulary of {metadata["vocab_size"]}')
    for split in SPLITS:
        entries = metadata['splits'][split]
        documents = sum(entry['documents'] for entry in entries)
        tokens = sum(entry['tokens'] for entry in entries)
        longest = max((entry['longest'] for entry in entries), default=0)
        print(f'  {split:10} {documents:12,} documents {tokens:16,} tokens, longest {longest:,}')


def _parser() -> argparse.ArgumentParser:
    parser = flags.parser('prepare', __doc__)
    corpus.add_flags(parser)
    parser.add_argument(
        '--tokenizer',
        type=paths.expanded,
        default='bytes',
        help="'bytes', *.model or tokenizer.json",
    )
    parser.add_argument('--out', type=paths.path, required=True, help='folder for the shards')
    parser.add_argument(
        '--workers',
        type=flags.positive,
        default=processors.usable(),
        help='processes (default: one for each core that it may use)',
    )
    parser.add_argument(
        '--part_mib',
        type=flags.positive,
        default=PART_BYTES >> 20,
        help='MiB of text that a worker takes at a time and that a restart may repeat',
    )
    return parser


if __name__ == '__main__':
    main()
