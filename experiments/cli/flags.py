"""Flags and ends that several tools share."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from nope.runtime import paths

INTERRUPTED = 130  # as a shell tells it


def parser(command: str, about: str | None, **options: Any) -> argparse.ArgumentParser:
    """The parser of `nope COMMAND`, whose help is `about` as it is written."""
    return argparse.ArgumentParser(
        prog=f'nope {command}',
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f'{text} is not above 0')
    return value


def add_model(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name the model and its batch."""
    parser.add_argument(
        '--model', type=paths.expanded, required=True, help='hf:DIR, or a folder of WORKDIR/runs'
    )
    parser.add_argument(
        '--tokenizer', type=paths.expanded, default='', help="'bytes' or a tokenizer file"
    )
    parser.add_argument('--step', type=int, help='a kept checkpoint before the last, of a run')
    parser.add_argument('--nope', action='store_true', help='hf: it was trained without rotation')
    parser.add_argument('--batch-tokens', type=positive, default=16384, help='a batch, per device')


def add_beginning(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how texts and prompts begin."""
    parser.add_argument(
        '--bos',
        action=argparse.BooleanOptionalAction,
        help="whether texts begin with BOS; default: with the tokenizer's own prefix",
    )
    parser.add_argument(
        '--chat', action='store_true', help="ask in turns, by the checkpoint's chat template"
    )


def check_output(path: pathlib.Path) -> None:
    """ValueError where the file of --output is there, or could not be written; makes its folder."""
    if os.path.lexists(path):
        raise ValueError(f'--output={path} is there already')
    check_folder(path.parent, f'--output={path}')


def check_folder(path: pathlib.Path, named: str) -> None:
    """ValueError, for the option `named`, where nothing can be written in a folder; makes it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ValueError(f'{named} cannot be written: {error.strerror}') from error


@contextlib.contextmanager
def ending(*errors: type[Exception], stopped: str = 'stopped') -> Iterator[None]:
    """Exits with 1 and the message of one of `errors`, with 130 and a line at Ctrl-C."""
    try:
        yield
    except errors as error:
        sys.exit(f'error: {error}')
    except RuntimeError as error:
        if 'RESOURCE_EXHAUSTED' not in str(error):
            raise
        sys.exit(f'error: not enough memory: {str(error).splitlines()[0]}')
    except KeyboardInterrupt:
        print(f'\n{stopped}', file=sys.stderr)
        sys.exit(INTERRUPTED)
