"""Evaluations of one model, with or without a lambda, and one table of what they found.

    nope evaluate --model=hf:DIR --eval=ruler,passkey --lengths=4096,8192 --out=FOLDER
    nope evaluate --model=work/quick/runs/RUN --scale=1.5 --lengths=128,256 \\
        --eval=perplexity:FILE,loss:FILE --out=FOLDER

--scale multiplies the attention logits of all heads in which lambda acts. --lam=FILE gives each
head its own multiplier, [layers][heads]. FILE is .npy, .json or .npz with an array `multiplier`, as
in records. The model must have no multipliers of its own.

FOLDER is a work folder, as of `nope run`. Its `records` has a folder for each evaluation of each
model, with records and finished samples. The same command goes on where it was stopped, and
measures nothing twice. The table is also in results.csv and results.jsonl.

Every window and every prompt begins as the tokenizer's own files begin a text, or as --bos and
--no-bos say. --chat asks questions in turns of a conversation. The table shows that prefix, the
questions, windows or texts (samples) and scored tokens behind a value, and the seconds of its
evaluation. Perplexity scores the same tokens at every length. LongBench takes the data sets whose
files are there, with five beams as in the paper on NoPE, or greedily (--beams=1) as in others'
tables. RULER leaves out tasks that some length has no room for. The harness scores tasks of lm_eval
by name (--harness-tasks=longbench2 --data=FOLDER), in windows of the longest length.

evaluations:
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from experiments.cli import checkpoint, flags
from experiments.cli.checkpoint import Command, commands, owners

STOPPED = 'stopped; the same command goes on from here'


def parser() -> argparse.ArgumentParser:
    forms = {command.form: command.what for command in commands().values()}
    wide = max(map(len, forms))
    listed = '\n'.join(f'  {form:{wide}}  {what}' for form, what in forms.items())
    made = flags.parser('evaluate', __doc__ + listed)
    flags.add_model(made)
    made.add_argument('--eval', required=True, help='names, with commas; some need NAME:PATH')
    made.add_argument('--lengths', required=True, help='tokens, with commas')
    made.add_argument('--out', type=paths.path, required=True, help='folder of the results')
    lam = made.add_mutually_exclusive_group()
    lam.add_argument('--scale', type=float, help='one multiplier of the softmax scale in all heads')
    lam.add_argument('--lam', type=paths.path, help='file of multipliers, [layers, heads]')
    flags.add_beginning(made)

    def shown(value: Any) -> str:
        text = ','.join(value) if isinstance(value, tuple) else value
        return 'not set' if text in (None, '') else str(text)

    for flag, having in owners().items():
        told = ', '.join(f'{x.name} ({shown(x.defaults[x.flags[flag]])})' for x in having)
        made.add_argument(f'--{flag}', default=argparse.SUPPRESS, metavar='X', help=f'of {told}')
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status, 0; exits with 1 and a message for what cannot be done."""
    options = parser().parse_args(arguments)
    with flags.ending(ValueError, OSError):
        asked, lengths = _asked(options)
    with flags.ending(*checkpoint.ERRORS, stopped=STOPPED):
        checkpoint.evaluate(options, asked, lengths)
    return 0


def _asked(options: argparse.Namespace) -> tuple[list[tuple[Command, str]], tuple[int, ...]]:
    """Commands with their paths, and ascending lengths. ValueError for what can be told from the
    flags and the files that they name alone."""
    asked, known = [], commands()
    for text in options.eval.split(','):
        name, _, path = text.partition(':')
        if name not in known:
            forms = ', '.join(command.form for command in known.values())
            raise ValueError(f'--eval has {text!r}; accepted: {forms}')
        if bool(path) != bool(known[name].behind):
            raise ValueError(f'--eval has {text!r}; accepted: {known[name].form}')
        asked.append((known[name], paths.expanded(path)))
    parts = [part.strip() for part in options.lengths.split(',')]
    lengths = [int(part) for part in parts if part.isdecimal() and int(part) > 1]
    if len(set(lengths)) < len(parts):
        rule = 'accepted: different numbers of tokens, as 4096,8192'
        raise ValueError(f'--lengths={options.lengths}; {rule}')
    names = [command.name for command, _ in asked]
    if len(set(names)) < len(names):
        raise ValueError(f'--eval has an evaluation twice: {", ".join(names)}')
    for flag, path in [*(('--eval', path) for _, path in asked if path), ('--lam', options.lam)]:
        if path is not None and not pathlib.Path(path).exists():
            raise ValueError(f'{flag} names {path}, which does not exist')
    if options.out.exists() and not options.out.is_dir():
        raise ValueError(f'--out={options.out} is a file; it must be a folder')
    if options.scale is not None and not 0 < options.scale < float('inf'):
        raise ValueError(f'--scale={options.scale}; it must be a finite number above 0')
    for flag, having in owners().items():
        value = vars(options).get(flag.replace('-', '_'))
        of = [command.name for command in having]
        if value is not None and not {*of}.intersection(names):
            raise ValueError(
                f'--{flag}={value} is for {" and ".join(of)}, which --eval does not ask for'
            )
    return asked, tuple(sorted(lengths))


if __name__ == '__main__':
    sys.exit(main())
