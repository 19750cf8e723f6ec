"""Runs evaluations on one model, with or without a lambda, and prints one table.

    python tools/evaluate.py --model=hf:DIR --eval=ruler,passkey --lengths=4096,8192 --out=FOLDER
    python tools/evaluate.py --model=work/quick/runs/RUN --scale=1.5 --lengths=128,256 \\
        --eval=perplexity:FILE,loss:FILE --out=FOLDER

| evaluation | what it measures |
|---|---|
| ruler | RULER's tasks (--tasks; --files=FOLDER for those that read files) at each length |
| passkey | 5-digit keys hidden in filler, at each length and ten depths |
| longbench:FOLDER | the English data sets of LongBench in windows of the longest length |
| helmet:FOLDER | HELMET's recall group: json_kv and RULER's needles, from its files |
| nolima:FOLDER | NoLiMa's needles, which share no words with the questions, in its books |
| perplexity:PATH | of the same tokens in sliding windows of each length over a file or a folder |
| longppl:PATH | perplexity over tokens that need more than L, or than half the least length |
| loss:PATH | loss and attention entropy by position up to the longest length |

--scale multiplies the attention logits of all heads in which lambda acts, --lam=FILE those of each
(.npz with an array `multiplier`, as records have it, .npy or .json, [layers][heads]), of a model
that has no multipliers of its own. Each evaluation has a folder in FOLDER, with its records and
finished samples: the same command goes on where it was stopped, and measures nothing twice. FOLDER
belongs to one model under one lambda.

Every window and every prompt begins as the tokenizer's own files begin a text, or as --bos and
--no-bos say; --chat asks questions in turns of a conversation. The table says that prefix, how many
questions, windows or texts (samples) and scored tokens stand behind a value, and the seconds of its
evaluation. Perplexity scores the same tokens at every length. LongBench takes the data sets whose
files are there, with five beams as in the paper on NoPE, or greedily (--beams=1) as in others'
tables. RULER leaves out tasks that a length has no room for.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import pathlib
import sys

from experiments.cli import flags as _flags

# Option -> the evaluations that read it.
READ_BY = {
    'samples': ('ruler',),
    'tasks': ('ruler',),
    'files': ('ruler',),
    'tests': ('passkey',),
    'template': ('passkey',),
    'windows': ('loss',),
    'stride': ('perplexity',),
    'budget': ('perplexity', 'longppl'),
    'beams': ('longbench',),
    'limit': ('longbench', 'helmet', 'nolima'),
}
NEEDS = {
    'ruler': '',
    'passkey': '',
    'longbench': 'FOLDER',
    'helmet': 'FOLDER',
    'nolima': 'FOLDER',
    'perplexity': 'PATH',
    'longppl': 'PATH',
    'loss': 'PATH',
}


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        options.eval = [_asked(text) for text in options.eval.split(',')]
        options.lengths = _lengths(options.lengths)
        _check(options)
    except ValueError as error:
        sys.exit(f'error: {error}')
    import _evaluate  # loads JAX, which takes a second

    _evaluate.main(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _flags.add_model(parser)
    parser.add_argument('--eval', required=True, help='names, with commas; some need NAME:PATH')
    parser.add_argument('--lengths', required=True, help='tokens, with commas')
    parser.add_argument('--out', type=paths.path, required=True, help='folder of the results')
    lam = parser.add_mutually_exclusive_group()
    lam.add_argument('--scale', type=float, help='one multiplier of 1/sqrt(head_dim) in all heads')
    lam.add_argument('--lam', type=paths.path, help='file of multipliers, [layers, heads]')
    _flags.add_beginning(parser)
    parser.add_argument('--samples', type=int, default=500, help='of each RULER task and length')
    parser.add_argument('--tasks', default='', help='of RULER; default: those without files')
    parser.add_argument('--files', type=paths.path, help="folder of RULER's files")
    parser.add_argument('--tests', type=int, default=10, help='pass keys of each length and depth')
    parser.add_argument('--template', default='paper', help="of pass keys: 'paper' or 'brief'")
    parser.add_argument('--windows', type=int, default=16, help='texts of `loss`')
    parser.add_argument(
        '--stride',
        type=int,
        help='tokens scored in a window; default: an eighth of the longest window, at most 128',
    )
    parser.add_argument(
        '--budget',
        type=int,
        help='tokens scored at each length (default 32,768), or of all texts of LongPPL (262,144)',
    )
    parser.add_argument('--beams', type=int, default=5, help='of LongBench; 1 for greedy')
    parser.add_argument(
        '--limit', type=int, help="samples of each file of LongBench and HELMET; NoLiMa's pairs"
    )
    return parser


def _asked(text: str) -> tuple[str, str]:
    """'loss:FILE' -> 'loss', 'FILE'. ValueError for another name, and a path too few or many."""
    name, _, path = text.partition(':')
    if name not in NEEDS:
        known = ', '.join(f'{name}:{need}' if need else name for name, need in NEEDS.items())
        raise ValueError(f'--eval has {text!r}; accepted: {known}')
    if bool(path) != bool(NEEDS[name]):
        form = f'{name}:{NEEDS[name]}' if NEEDS[name] else name
        raise ValueError(f'--eval has {text!r}; accepted: {form}')
    return name, paths.expanded(path)


def _lengths(text: str) -> tuple[int, ...]:
    """Ascending. ValueError for what is no list of different whole numbers above 1."""
    parts = [part.strip() for part in text.split(',')]
    found = [int(part) for part in parts if part.isdecimal() and int(part) > 1]
    if len(set(found)) < len(parts):
        raise ValueError(f'--lengths={text}; accepted: different numbers of tokens, as 4096,8192')
    return tuple(sorted(found))


def _check(options: argparse.Namespace) -> None:
    names = [name for name, _ in options.eval]
    if len(set(names)) < len(names):
        raise ValueError(f'--eval has an evaluation twice: {", ".join(names)}')
    given = [('--eval', path) for _, path in options.eval if path]
    given += [('--lam', options.lam), ('--files', options.files)]
    for flag, path in given:
        if path is not None and not pathlib.Path(path).exists():
            raise ValueError(f'{flag} names {path}, which does not exist')
    if options.out.exists() and not options.out.is_dir():
        raise ValueError(f'--out={options.out} is a file; it must be a folder')
    if options.scale is not None and not 0 < options.scale < float('inf'):
        raise ValueError(f'--scale={options.scale}; it must be a finite number above 0')
    for flag in ('samples', 'tests', 'windows', 'budget', 'stride', 'limit', 'beams'):
        value = vars(options)[flag]
        if value is not None and value < 1:
            raise ValueError(f'--{flag}={value}; it must be at least 1')
    parser = _parser()
    for flag, kinds in READ_BY.items():
        given = vars(options)[flag] != parser.get_default(flag)
        if given and not {*kinds}.intersection(names):
            raise ValueError(
                f'--{flag}={vars(options)[flag]} is for {" and ".join(kinds)}, which --eval does '
                'not ask for'
            )


if __name__ == '__main__':
    main()
