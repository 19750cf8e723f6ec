"""Import of a Hugging Face directory: checks every tensor, describes the model, saves it.

    nope import DIR                   # checks and describes
    nope import DIR --out=FOLDER      # and saves an Orbax checkpoint of it

Any config reads such a directory itself, by init = 'hf:DIR'; the checkpoint is for everything else
that reads Orbax, and for `nope export`.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import resource
import sys
import time
from collections.abc import Mapping

import jax

from experiments.cli import flags
from nope import interop
from nope.checkpoints.errors import CheckpointError
from nope.interop.run_folder import write_run
from nope.model import counts
from nope.positions import NoPE
from nope.runtime import progress
from nope.runtime.saying import printable
from nope.sharding import MeshConfig, make_mesh


def main(arguments: list[str] | None = None) -> None:
    parser = flags.parser('import', __doc__)
    parser.add_argument('directory', type=paths.path, help='config.json and safetensors')
    parser.add_argument('--out', type=paths.path, help='folder for the Orbax checkpoint')
    parser.add_argument(
        '--nope', action='store_true', help='the model was trained without rotation'
    )
    options = parser.parse_args(arguments)
    with flags.ending(ValueError, OSError, CheckpointError):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    if options.out and options.out.exists():
        raise ValueError(f'--out={options.out} is there already')
    source = paths.path(str(options.directory).removeprefix('hf:'))
    directory = interop.open_directory(source)
    described = interop.describe(directory, position=NoPE() if options.nope else None)
    model = described.model
    print(
        f'{options.directory}: {model.describe_position()} positions, {model.layers} layers, '
        f'width {model.width}, {model.heads} heads on {model.kv_heads}, vocabulary of '
        f'{model.vocab_size:,}, {counts.parameters(model):,} parameters in {described.dtype}, '
        f'trained at {described.train_length or "an unknown length"}'
    )
    ignored = interop.ignored_tensors(directory, model)
    for line in left_out(ignored):
        print(f'  left out: {line}')
    if options.out:
        flags.check_folder(options.out.parent, f'--out={options.out}')
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    began = time.monotonic()
    variables = interop.load(
        directory, model, mesh, progress=lambda tensors: progress.bar(tensors, desc='import')
    )
    seconds = time.monotonic() - began
    unit = 1 if sys.platform == 'darwin' else 2**10  # bytes there, KiB elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
    read = len(directory.tensors) - len(ignored)
    print(f'{read} tensors read in {seconds:.1f} s, peak memory {peak:.1f} GiB')
    if options.out:
        origin = {'path': str(source.resolve()), 'fingerprint': interop.fingerprint(directory)}
        write_run(options.out, described, variables, origin)
        print(options.out)


def left_out(ignored: Mapping[str, str]) -> list[str]:
    """Tensors that are not read, a line for each reason. ignored: name -> reason."""
    lines = []
    for reason in dict.fromkeys(ignored.values()):
        names = [name for name in ignored if ignored[name] == reason]
        several = f' and {len(names) - 1:,} more' if len(names) > 1 else ''
        lines.append(f'{printable(names[0])}{several} ({reason})')
    return lines


if __name__ == '__main__':
    main()
