"""Training of a tokenizer on a corpus: byte-level BPE.

    nope tokenizer --source=jsonl --path=corpus/ --vocab_size=8192 --out=tokenizer
    nope prepare --source=jsonl --path=corpus/ --tokenizer=tokenizer/tokenizer.json \\
        --out=shards/corpus

It learns from the training split. The folder is one that transformers reads as well.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import pathlib
import tempfile

from experiments.cli import corpus, flags
from nope.data import bpe


def main(arguments: list[str] | None = None) -> None:
    parser = _parser()
    options = parser.parse_args(arguments)
    with flags.ending(ValueError, OSError, stopped='stopped; no tokenizer was written'):
        flags.check_folder(options.out, f'--out={options.out}')
        with tempfile.TemporaryDirectory() as scratch:
            made = bpe.train(
                corpus.source_of(options, parser),
                options.out,
                vocab_size=options.vocab_size,
                cache=pathlib.Path(scratch),
                field='--vocab_size',
            )
    print(f'{options.out / "tokenizer.json"}: vocabulary of {made.vocab_size:,}')


def _parser() -> argparse.ArgumentParser:
    parser = flags.parser('tokenizer', __doc__)
    corpus.add_flags(parser)
    parser.add_argument('--vocab_size', type=flags.positive, default=8192, help='entries')
    parser.add_argument('--out', type=paths.path, required=True, help='folder for its files')
    return parser


if __name__ == '__main__':
    main()
