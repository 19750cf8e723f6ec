"""One HTML page of all that a work folder holds, or of two beside each other, without JAX.

    nope report WORKDIR [WORKDIR_B] [--out=FILE]

The page is WORKDIR/report.html unless --out says another file; the last line prints its path. It
needs no network and no other file. Exit status: 0 done, 2 bad input.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import sys

from experiments.report import page
from experiments.statuses import BAD_INPUT
from nope.runtime import files

NAME = 'report.html'


def main(arguments: list[str]) -> int:
    if {'--help', '-h'} & {*arguments}:
        print(__doc__)
        return 0
    folders = [a for a in arguments if not a.startswith('-')]
    outs = [a.removeprefix('--out=') for a in arguments if a.startswith('--out=')]
    known = len(folders) + len(outs) == len(arguments)
    if not known or len(folders) not in (1, 2) or len(outs) > 1 or '' in outs:
        print(__doc__, file=sys.stderr)
        return BAD_INPUT
    roots = [paths.path(folder) for folder in folders]
    out = paths.path(outs[0]) if outs else roots[0] / NAME
    try:
        if out.is_dir():
            raise ValueError(f'--out={out} is a folder; it must be a file')
        files.write_bytes(out, page.render(roots, out))
    except (OSError, ValueError) as error:
        print(f'error: {error}', file=sys.stderr)
        return BAD_INPUT
    print(out)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
