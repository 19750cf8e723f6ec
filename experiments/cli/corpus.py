"""Flags of the commands that read a corpus, and the source that they describe."""

from __future__ import annotations

import argparse
import dataclasses

from experiments.cli import flags
from nope.data.sources import KINDS, Shards, Source
from nope.data.sources.base import MAX_LINE_BYTES
from nope.data.templates import FILLER
from nope.runtime import paths


def add_flags(parser: argparse.ArgumentParser) -> None:
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
        type=flags.positive,
        default=MAX_LINE_BYTES,
        help='a longer line or value is refused (jsonl, parquet)',
    )
    parser.add_argument(
        '--record_length', type=flags.positive, help='tokens of a record (retrieval)'
    )
    parser.add_argument(
        '--needles', type=flags.positive, default=1, help='keys of a record (retrieval)'
    )
    parser.add_argument(
        '--haystacks',
        type=lambda typed: tuple(typed.split(',')),
        default=(FILLER,),
        help="what keys are hidden in: 'filler', 'text' of the standard library, or "
        "'filler,text' (retrieval)",
    )


def source_of(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Source:
    """The corpus that the flags describe. ValueError for a flag that is given and that sources of
    its kind do not read."""
    options.leave_out = tuple(options.leave_out)
    kind = KINDS[options.source]
    fields = {name: {f.name for f in dataclasses.fields(kind)} for name, kind in KINDS.items()}
    for field in set().union(*fields.values()) & vars(options).keys() - {'path', 'tokenizer'}:
        default = parser.get_default(field)
        given = vars(options)[field] != (tuple(default) if isinstance(default, list) else default)
        if field in fields[options.source] or not given:
            continue
        kinds = [name for name, own in fields.items() if field in own and name != 'shards']
        raise ValueError(
            f'--{field} is given, and --source={options.source} does not read it; it is for '
            f'{" and ".join(sorted(kinds))}'
        )
    names = {field: f'--{field}' for field in vars(options)} | {'source': '--path'}
    return kind.from_section(options.path, vars(options), None, names)


def _rule(typed: str) -> tuple[str, str]:
    field, found, value = typed.partition('=')
    if not (field and found):
        raise argparse.ArgumentTypeError(f'{typed!r}; accepted: FIELD=TEXT')
    return field, value
