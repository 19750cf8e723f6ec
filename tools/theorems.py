"""Theorems of arXiv 2305.19466 run through the decoder: how far each dtype carries them.

    python tools/theorems.py [--longest=4096] [--tokens=256] [--out=FOLDER]

One JSON line per theorem and dtype. Theorem 1: the count of tokens that one layer without position
encoding writes into the hidden state, for N = --longest tokens; `exact_to` is the last position up
to which it is right when rounded. Beside it, in NumPy, the same with the MLP's ramps the other way
around. Theorem 2: the largest error of the second layer's attention weights over --tokens
tokens, and of their ratio from key to key, which is to follow the distance alone. --out also writes
theorems.csv with the error of the count by position, and its figure as PNG and PDF.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import argparse


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--longest', type=int, default=4096, help='N of Theorem 1')
    parser.add_argument('--tokens', type=int, default=256, help='of Theorem 2')
    parser.add_argument('--out', type=paths.path, help='folder for a figure and its numbers')
    options = parser.parse_args(arguments)
    for name in ('longest', 'tokens'):
        if getattr(options, name) < 2:
            parser.error(f'--{name}={getattr(options, name)}: it must be at least 2')
    import _theorems  # loads JAX, which takes a second

    _theorems.main(options.longest, options.tokens, options.out)


if __name__ == '__main__':
    main()
