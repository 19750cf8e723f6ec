"""Export of a run's model to a Hugging Face directory that stock transformers loads.

    nope export work/quick/runs/RUN OUT
    nope export work/quick/runs/RUN OUT --lam=scale_param
    nope export work/quick/runs/RUN OUT --length=2048 --length=8192

Lambda is multiplied into the query weights (`fold`), or kept as tensors of the name scale_param,
which stock transformers does not know. A lambda that follows the length of the sequence is written
for one named length; several lengths make OUT/LENGTH each.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import pathlib
import sys

import jax

from experiments.cli import flags, models
from nope.checkpoints.errors import CheckpointError
from nope.data import ids_in_use, load_tokenizer
from nope.interop import Export, check_export, save
from nope.interop.run_folder import read_run
from nope.interop.save import DTYPES, LAM_WAYS
from nope.interop.tokenizer_files import ends_within, has_tokenizer, tokenizer_in
from nope.sharding import MeshConfig, make_mesh


def main(arguments: list[str] | None = None) -> None:
    parser = flags.parser('export', __doc__)
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
    options = parser.parse_args(arguments)
    with flags.ending(ValueError, OSError, CheckpointError):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    lengths = options.length or [None]
    places = [options.out / str(length) if len(lengths) > 1 else options.out for length in lengths]
    for path in places:
        if path.exists():
            raise ValueError(f'{path} is there already; nothing was written')
    if options.run.is_dir():
        flags.check_folder(options.out.parent, str(options.out))
    mesh = make_mesh(MeshConfig(fsdp=jax.device_count()))
    found = read_run(options.run, mesh, options.step)
    dtype = options.dtype or found.described.dtype
    wanted = {
        path: Export(options.lam, length, dtype)
        for path, length in zip(places, lengths, strict=True)
    }
    for export in wanted.values():
        check_export(found.described.model, export)
    tokenizer = options.tokenizer or models.tokenizer_source(options.run, found.spec)
    described = found.described
    readable, written = tokenizer, bool(tokenizer)
    if tokenizer and pathlib.Path(tokenizer).is_dir():
        readable = tokenizer_in(pathlib.Path(tokenizer))
        written = has_tokenizer(pathlib.Path(tokenizer))
    if options.tokenizer and not written:
        raise ValueError(f'--tokenizer={tokenizer}: there is no tokenizer file in it')
    if not written:
        print('no tokenizer is written: name one with --tokenizer', file=sys.stderr)
    if readable:
        marks = load_tokenizer(readable, '--tokenizer')
        trained_by = found.spec.get('data', {}).get('tokenizer')
        if trained_by and marks.fingerprint != trained_by:
            print(f'warning: {models.other_tokenizer(readable)}', file=sys.stderr)
        used, size = ids_in_use(marks), described.model.vocab_size
        if used > size:
            raise ValueError(f'{readable} has {used} tokens; the model has {size}')
        ends = ends_within(marks, described.model.vocab_size)
        bos = described.bos if marks.bos_id is None and not options.tokenizer else marks.bos_id
        described = described._replace(bos=bos, eos=marks.eos_id, ends=ends)
    origin = {'run': options.run.resolve().name, 'step': options.step, 'spec': dict(found.spec)}
    for path, export in wanted.items():
        save(
            path,
            found.variables,
            described,
            export=export,
            tokenizer=tokenizer or None,
            origin=origin,
        )
        print(path)


if __name__ == '__main__':
    main()
