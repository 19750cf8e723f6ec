"""Export of a run's model to a Hugging Face directory that stock transformers loads.

    python tools/export_hf.py work/quick/runs/RUN OUT
    python tools/export_hf.py work/quick/runs/RUN OUT --lam=scale_param
    python tools/export_hf.py work/quick/runs/RUN OUT --length=2048 --length=8192

Lambda is multiplied into the query weights (`fold`), or kept as tensors of the name scale_param,
which stock transformers does not know. A lambda that follows the length of the sequence is written
for one named length; several lengths make OUT/LENGTH each.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import argparse

# Those of nope.interop.save, which would load JAX.
LAM_WAYS = ('fold', 'scale_param', 'none')
DTYPES = ('float32', 'bfloat16', 'float16')


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    import _export_hf  # loads JAX, which takes a second

    _export_hf.main(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('run', type=paths.path, help='a folder of WORKDIR/runs')
    parser.add_argument('out', type=paths.path, help='the directory to write')
    parser.add_argument('--lam', choices=LAM_WAYS, default='fold', help='where lambda goes')
    parser.add_argument('--length', type=int, action='append', help='tokens that lambda is for')
    parser.add_argument('--dtype', choices=DTYPES, help='of the tensors (default: as read)')
    parser.add_argument(
        '--tokenizer',
        type=paths.expanded,
        default='',
        help="'bytes', a tokenizer file or a directory",
    )
    parser.add_argument('--step', type=int, help='a kept checkpoint before the last')
    return parser


if __name__ == '__main__':
    main()
