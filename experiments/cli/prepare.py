"""Tokenisation of a corpus into token shards, to train from on any number of machines.

    nope prepare --source=jsonl --path=corpus/ --tokenizer=tokenizer.model \\
        --out=shards/corpus --workers=16

Interrupted, the same command continues; the files do not depend on the number of workers. To
train from the shards: --config.data.source=shards:shards/corpus.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import dataclasses
import os
import pathlib
import tempfile

from experiments.cli import flags
from nope.data import SPLITS, prepare
from nope.data.sources import KINDS, PART_BYTES, Shards
from nope.data.sources.base import MAX_LINE_BYTES
from nope.data.templates import FILLER


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    options.leave_out = tuple(options.leave_out)
    with flags.ending(ValueError, OSError, stopped='stopped; the same command goes on from here'):
        kind = KINDS[options.source]
        _check_read(options)
        names = {field: f'--{field}' for field in vars(options)} | {'source': '--path'}
        source = kind.from_section(options.path, vars(options), None, names)
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
    parser = argparse.ArgumentParser(
        prog='nope prepare',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = [name for name, kind in KINDS.items() if kind is not Shards]
    parser.add_argument('--source', choices=kinds, required=True, help='kind of the corpus')
    parser.add_argument('--path', type=paths.expanded, default='', help='file, folder or TFDS name')
    parser.add_argument('--field', default='text', help='column of the text (jsonl, parquet, tfds)')
    parser.add_argument(
        '--leave_out',
        type=_rule,
        action='append',
        default=[],
        metavar='FIELD=TEXT',
        help='lines that are no documents, as meta.redpajama_set_name=RedPajamaGithub (jsonl)',
    )
    parser.add_argument(
        '--max_line_bytes',
        type=_positive,
        default=MAX_LINE_BYTES,
        help='a longer line or value is refused (jsonl, parquet)',
    )
    parser.add_argument('--record_length', type=_positive, help='bytes of a record (retrieval)')
    parser.add_argument('--needles', type=_positive, default=1, help='keys of a record (retrieval)')
    parser.add_argument(
        '--haystacks',
        type=lambda typed: tuple(typed.split(',')),
        default=(FILLER,),
        help="what keys are hidden in: 'filler', 'text' of the standard library, or "
        "'filler,text' (retrieval)",
    )
    parser.add_argument(
        '--tokenizer',
        type=paths.expanded,
        default='bytes',
        help="'bytes', *.model or tokenizer.json",
    )
    parser.add_argument('--out', type=paths.path, required=True, help='folder for the shards')
    parser.add_argument(
        '--workers',
        type=_positive,
        default=os.cpu_count() or 1,
        help='processes (default: all cores)',
    )
    parser.add_argument(
        '--part_mib',
        type=_positive,
        default=PART_BYTES >> 20,
        help='MiB of text that a worker takes at a time and that a restart may repeat',
    )
    return parser


def _check_read(options: argparse.Namespace) -> None:
    """ValueError for a flag that is given and that sources of this kind do not read."""
    fields = {name: {f.name for f in dataclasses.fields(kind)} for name, kind in KINDS.items()}
    defaults = vars(_parser().parse_args(['--source', options.source, '--out', str(options.out)]))
    for field in set().union(*fields.values()) & vars(options).keys() - {'path'}:
        default = defaults[field]
        given = vars(options)[field] != (tuple(default) if isinstance(default, list) else default)
        if field in fields[options.source] or not given:
            continue
        kinds = [name for name, own in fields.items() if field in own and name != 'shards']
        raise ValueError(
            f'--{field} is given, and --source={options.source} does not read it; it is for '
            f'{" and ".join(sorted(kinds))}'
        )


def _rule(typed: str) -> tuple[str, str]:
    field, found, value = typed.partition('=')
    if not (field and found):
        raise argparse.ArgumentTypeError(f'{typed!r}; accepted: FIELD=TEXT')
    return field, value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f'{text} is not above 0')
    return value


if __name__ == '__main__':
    main()
