"""State of the pieces of a sweep: done, running, failed, missing; without JAX, nothing is changed.

    nope status WORKDIR [NAME ...] [--only=running,failed]

It prints a line for each piece of the figures NAME (all that commands worked on in WORKDIR). The
line tells step, steps a second and time left of a training, finished samples of an evaluation, why
a piece failed. Commands at work are not disturbed. Exit status: 0 all is done, 1 something is not,
2 bad input.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import collections
import dataclasses
import datetime
import os
import pathlib
import sys
from collections.abc import Iterable, Sequence

from experiments import pieces
from experiments.pieces import Piece
from experiments.statuses import BAD_INPUT
from nope.checkpoints import holder
from nope.training import metrics

SAMPLES = 'samples.jsonl'
DONE, RUNNING, FAILED, MISSING = STATES = ('done', 'running', 'failed', 'missing')


@dataclasses.dataclass(frozen=True)
class Row:
    """A piece, its state, and what else is known of it."""

    piece: Piece
    state: str
    more: str = ''


def rows(root: pathlib.Path, name: str) -> list[Row]:
    """States of the pieces of figure `name` in the work folder `root`, each after what it needs;
    what only finished pieces needed is left out. ValueError as `pieces.read`."""
    listed = pieces.read(root, name)
    done = {piece.folder for piece in listed if (root / piece.folder / piece.finished).exists()}
    asked = pieces.asked([piece for piece in listed if piece.folder not in done])
    shown = done | {piece.folder for piece in asked}
    return [_row(root, piece, done) for piece in listed if piece.folder in shown]


def table(found: Sequence[Row], only: Iterable[str] = STATES) -> str:
    """One line a piece, and the numbers of all in a last one."""
    shown = [row for row in found if row.state in set(only)]
    names = [f'{row.piece.what:8} {row.piece.name}' for row in shown]
    users = []
    for row in shown:
        first, *others = row.piece.used_by or ('',)
        users.append(f'{first} +{len(others)}' if others else first)
    wide, wider = (max(map(len, texts), default=0) for texts in (names, users))
    lines = [
        f'{row.state:8} {name:{wide}}  {user:{wider}}  {row.more}'.rstrip()
        for row, name, user in zip(shown, names, users, strict=True)
    ]
    numbers = collections.Counter(row.state for row in found)
    counted = ', '.join(f'{numbers[state]} {state}' for state in STATES)
    return '\n'.join([*lines, f'{len(found)} pieces: {counted}'])


def _row(root: pathlib.Path, piece: Piece, done: set[str]) -> Row:
    folder = root / piece.folder
    if piece.folder in done:
        return Row(piece, DONE)
    if holder.is_held(folder, root / piece.lock):
        return Row(piece, RUNNING, _progress(folder, piece))
    try:
        failure = pieces.reason(root / piece.failed)
    except (OSError, ValueError):
        failure = 'for a reason that cannot be read'
    if failure:
        return Row(piece, FAILED, failure)
    waits = [pathlib.PurePath(need).name for need in piece.needs if need not in done]
    more = f'waits for {waits[0]}' if waits else _progress(folder, piece, at_rest=True)
    return Row(piece, MISSING, more + (f' and {len(waits) - 1} more' if len(waits) > 1 else ''))


def _progress(folder: pathlib.Path, piece: Piece, at_rest: bool = False) -> str:
    """Progress of a piece, from the files of its folder: step, rate and time left, or samples."""
    if piece.what != 'train':
        log = folder / SAMPLES
        number = log.read_bytes().count(b'\n') if log.exists() else 0
        return f'{number:,} samples' if number else ''
    found = metrics.read(folder)
    if not found:
        return '' if at_rest else 'before its first step'
    last = found[-1]
    step, rate = last['step'], last.get('tokens_per_second')
    told = f'step {step:,} of {piece.steps:,}'
    if at_rest or not rate or not piece.tokens:
        return told
    speed = rate / piece.tokens
    left = datetime.timedelta(seconds=round((piece.steps - step) / speed))
    return f'{told}, {speed:.3g} steps/s, {left} left'


def main(arguments: Sequence[str]) -> int:
    if {'--help', '-h'} & {*arguments}:
        print(__doc__)
        return 0
    places = [a for a in arguments if not a.startswith('-')]
    options = [a.removeprefix('--only=') for a in arguments if a.startswith('--only=')]
    if not places or len(places) + len(options) < len(arguments) or len(options) > 1:
        print(__doc__, file=sys.stderr)
        return BAD_INPUT
    only = options[0].split(',') if options else STATES
    root, names = paths.path(places[0]), places[1:]
    try:
        unknown = sorted(set(only) - set(STATES))
        if unknown:
            raise ValueError(f'--only={options[0]}: accepted are some of {", ".join(STATES)}')
        names = names or pieces.names(root)
        if not names:
            raise ValueError(f'{root / pieces.ROOM} lists no figure; `nope run` makes a list')
        found = {name: rows(root, name) for name in names}
    except (OSError, ValueError) as error:
        print(f'error: {error}', file=sys.stderr)
        return BAD_INPUT
    for name, states in found.items():
        print(f'{name}\n{table(states, only)}')
    return int(any(row.state != DONE for states in found.values() for row in states))


if __name__ == '__main__':
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
