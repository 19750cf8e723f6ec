"""Import of a Hugging Face directory: checks every tensor, describes the model, saves it.

    python tools/import_hf.py DIR                   # checks and describes
    python tools/import_hf.py DIR --out=FOLDER      # and saves an Orbax checkpoint of it

Any config reads such a directory itself, by init = 'hf:DIR'; the checkpoint is for everything else
that reads Orbax, and for tools/export_hf.py.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter(__file__)

import argparse


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    import _import_hf  # loads JAX, which takes a second

    _import_hf.main(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('directory', type=paths.path, help='config.json and safetensors')
    parser.add_argument('--out', type=paths.path, help='folder for the Orbax checkpoint')
    parser.add_argument(
        '--nope', action='store_true', help='the model was trained without rotation'
    )
    return parser


if __name__ == '__main__':
    main()
