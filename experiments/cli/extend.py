"""A checkpoint made to read further: searches lambda at a length, measures, exports the model.

    nope extend hf:DIR --length=16384 --text=FOLDER
    nope extend hf:DIR --length=16384 --text=FOLDER --law=log_length --workdir=work/mine

The short form of configs/checkpoints/extend.py, which says what is done. The figure of before and
after lies in WORKDIR/figures/extend, the exported model in WORKDIR/exports. --text is a folder or
file of text of the kind the model was trained on. Any other flag of `nope run`
(`--config.search.steps=100`, `--plan`) is passed on.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import runpy
import sys

from experiments.cli import flags
from experiments.config_files import ROOT, place

LAWS = ('constant', 'log_length')  # those of the config


def main(arguments: list[str] | None = None) -> None:
    """Becomes `experiments.run`, whose exit status ends the process."""
    options, more = _parser().parse_known_args(arguments)
    if stray := [text for text in more if not text.startswith('--')]:
        _parser().error(f'stray arguments {stray}')
    if (options.text is None) != any(text.startswith('--config.data.source=') for text in more):
        _parser().error('give one of --text=PATH and --config.data.source=KIND:PATH')
    sys.argv = [
        sys.argv[0],
        f'--config={ROOT / place("extend")}:{options.law}',
        f'--workdir={options.workdir}',
        f'--config.init={options.checkpoint}',
        f'--config.length={options.length}',
        *([] if options.text is None else [f'--config.data.source=text:{options.text}']),
        *(['--plan'] if options.plan else []),
        *more,
    ]
    runpy.run_module('experiments.run', run_name='__main__', alter_sys=True)


def _parser() -> argparse.ArgumentParser:
    parser = flags.parser('extend', __doc__, allow_abbrev=False)
    parser.add_argument('checkpoint', type=_checkpoint, metavar='hf:DIR')
    parser.add_argument(
        '--length', type=int, required=True, help='tokens to read, beyond its training length'
    )
    parser.add_argument(
        '--text', type=paths.path, help='folder or file of text; or --config.data.source=KIND:PATH'
    )
    parser.add_argument('--law', choices=LAWS, default='constant', help='(default: constant)')
    parser.add_argument(
        '--workdir', type=paths.path, default='work/extend', help='(default: work/extend)'
    )
    parser.add_argument('--plan', action='store_true', help='print the least time, and end')
    return parser


def _checkpoint(typed: str) -> str:
    if not typed.startswith('hf:'):
        raise argparse.ArgumentTypeError(f'{typed!r}; accepted: hf:DIR, a Hugging Face directory')
    return paths.expanded(typed)


if __name__ == '__main__':
    main()
